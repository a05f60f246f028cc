-- admit_judged: the part of `admit` that judges requests one by one and opens those that pass, for batches in which something does not fit.
--
-- openings  opening[]     the requests; their order is the order of judgement
-- opener    text          the gateway
-- payers    hold_sum[]    the distinct accounts among them
-- callers   hold_sum[]    the distinct API keys
-- keyed     keyed_call[]  those with an idempotency key
--
-- n         bigint        the position of a request that was not admitted; of a standing, the API key
-- verdict   text          unauthorized | balance | budget | mismatch | in_flight | replay, the name of a limit (`broken_limit`), or standing
-- original  uuid          for the three of idempotency: the request that has the idempotency key
-- standing  jsonb         the limits of its owners (`limits_of`): of a request that broke one, as it met them; of a key, after the batch
create or replace function admit_judged(openings opening[], opener text, payers hold_sum[], callers hold_sum[], keyed keyed_call[])
returns table (n bigint, verdict text, original uuid, standing jsonb)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  o opening;
  a account;
  k api_key;
  earlier idempotency;
  moment timestamptz;
begin
  -- A statement of its own: those that follow see the rows as locked. Lock and judgement in one statement once let
  -- near-empty accounts through beside settlements, and the CHECK then failed the whole batch.
  perform from account a where a.id = any (array(select p.id from unnest(payers) p)) order by a.id for no key update;
  -- Not now(), which was before the wait for the locks: instants under an account's lock must not run backwards.
  moment := clock_timestamp();

  for i in 1 .. cardinality(openings) loop
    o := openings[i];
    n := i;
    original := null;
    standing := null;
    select * into a from account a where a.id = o.account_id;
    select * into k from api_key k where k.id = o.api_key_id and k.account_id = o.account_id;
    verdict := case
      when k.id is null or a.id is null or a.suspended_at is not null or k.revoked_at is not null or k.expires_at <= moment then 'unauthorized'
      else 'admitted' end;

    if verdict = 'admitted' and cardinality(keyed) > 0 then
      select e.* into earlier from unnest(keyed) c join idempotency e
        on e.account_id = c.account_id and e.api_key_id = c.api_key_id and e.key = c.key where c.n = i;
      if found then
        original := earlier.request_id;
        verdict := case
          when earlier.body_hash <> (select c.body_hash from unnest(keyed) c where c.n = i) then 'mismatch'
          when exists (select from open_request r where r.id = earlier.request_id) then 'in_flight'
          else 'replay' end;
      end if;
    end if;
    if verdict = 'admitted' and o.hold > 0 then
      verdict := case
        when o.hold > a.available_nanos + a.credit_limit_nanos then 'balance'
        when o.hold > k.budget_nanos - k.used_nanos then 'budget'
        else 'admitted' end;
    end if;
    if verdict = 'admitted' and (a.limited or k.limited) then
      verdict := coalesce(broken_limit(o.account_id, o.api_key_id, o.hold, o.tokens, moment), 'admitted');
      if verdict <> 'admitted' then
        standing := limits_of(o.account_id, o.api_key_id, o.hold, o.tokens, moment);
      end if;
    end if;

    if verdict = 'admitted' then
      update account a set available_nanos = a.available_nanos - o.hold, held_nanos = a.held_nanos + o.hold where a.id = o.account_id;
      update api_key k set used_nanos = k.used_nanos + o.hold, last_used_at = moment where k.id = o.api_key_id;
      if a.limited then
        perform count_limits(0, array[(o.account_id, o.account_id, o.hold, 1, o.tokens)::hold_sum], moment);
      end if;
      if k.limited then
        perform count_limits(1, array[(o.api_key_id, o.account_id, o.hold, 1, o.tokens)::hold_sum], moment);
      end if;
      insert into open_request (id, account_id, api_key_id, hold_nanos, created_at, deadline_at, model_id, price_version_id, task, keep, pool,
          gateway, tokens, terms)
        values (o.id, o.account_id, o.api_key_id, o.hold, moment, moment + o.deadline_s * interval '1 second', o.model_id, o.price_version_id,
          o.task, o.keep, o.pool, opener, o.tokens, o.terms);
    end if;
    if verdict <> 'admitted' then
      return next;
    end if;
  end loop;

  return query
    select c.id, 'standing', null::uuid, limits_of(c.account_id, c.id, null, null, moment) from unnest(callers) c
    where (select k.limited from api_key k where k.id = c.id) or (select a.limited from account a where a.id = c.account_id);
end $$;
