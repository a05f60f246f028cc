-- admit: sets holds aside and opens requests, many in one transaction. Answers those that were NOT admitted, and how limits stand: no row
-- means all were admitted, of owners without limits. A request with other ways keeps which they are, with the price versions that it may be charged at.
--
-- openings  opening[]     the requests; their order is the order of judgement
-- opener    text          the gateway
-- payers    hold_sum[]    what they ask for together, for each account in id order
-- callers   hold_sum[]    the same for each API key
-- keyed     keyed_call[]  those with an idempotency key; no key of one API key twice in one call
-- kept      kept_request[]  those with a payload to keep
-- ways      request_way[]   those that may go other ways
--
-- n, verdict, original, standing   as `admit_judged` answers
--
-- First as if everything fitted, which costs half as much: each UPDATE judges and moves in one, and Postgres checks its
-- condition again on the newest version of the row. Where something does not fit, that is undone and each request is judged.
-- Rows of hot tables are found by scalar subqueries, never by a join: a plan that was made while the table was empty would read all
-- of it for every batch.
-- Locks: accounts in id order; what belongs to an account (its keys' use, its limits, its idempotency keys) changes only under its lock.
create or replace function admit(
  openings opening[], opener text, payers hold_sum[], callers hold_sum[], keyed keyed_call[], kept kept_request[], ways request_way[]
)
returns table (n bigint, verdict text, original uuid, standing jsonb)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  rows int;
  fits boolean;
  payer_limited boolean;
  caller_limited boolean := false;
  moment timestamptz := now();
begin
  begin
    with moved as (
      update account a set available_nanos = a.available_nanos - s.hold, held_nanos = a.held_nanos + s.hold
      from unnest(payers) s
      where a.id = s.id and a.suspended_at is null and s.hold <= a.available_nanos + a.credit_limit_nanos
      returning a.limited
    )
    select count(*), bool_or(m.limited) into rows, payer_limited from moved m;
    fits := rows = cardinality(payers);
    if fits then
      with used as (
        update api_key k set used_nanos = k.used_nanos + s.hold, last_used_at = now()
        from unnest(callers) s
        where k.id = s.id and k.account_id = s.account_id and k.revoked_at is null and (k.expires_at <= now()) is not true
          and (s.hold = 0 or k.budget_nanos is null or s.hold <= k.budget_nanos - k.used_nanos)
        returning k.limited
      )
      select count(*), bool_or(u.limited) into rows, caller_limited from used u;
      fits := rows = cardinality(callers);
    end if;
    if fits and (payer_limited or caller_limited) then
      -- Not now(), which was before the wait for the locks: instants under an account's lock must not run backwards.
      moment := clock_timestamp();
      fits := (not payer_limited or count_limits(0, payers, moment)) and (not caller_limited or count_limits(1, callers, moment));
    end if;
    if fits and cardinality(keyed) > 0 then
      fits := (select bool_and((select true from idempotency i where i.account_id = k.account_id and i.api_key_id = k.api_key_id
        and i.key = k.key) is null) from unnest(keyed) k);
    end if;
    if not fits then
      raise exception using errcode = 'FG001'; -- undoes this block only
    end if;
    insert into open_request (id, account_id, api_key_id, hold_nanos, created_at, deadline_at, model_id, price_version_id, task, keep, pool,
        gateway, tokens, terms)
      select id, account_id, api_key_id, hold, moment, moment + deadline_s * interval '1 second', model_id, price_version_id, task, keep, pool,
        opener, tokens, terms
      from unnest(openings);
    if payer_limited or caller_limited then
      return query select c.id, 'standing', null::uuid, limits_of(c.account_id, c.id, null, null, moment) from unnest(callers) c;
    end if;
  exception when sqlstate 'FG001' then
    return query select * from admit_judged(openings, opener, payers, callers, keyed);
  end;

  if cardinality(keyed) > 0 then
    insert into idempotency (account_id, api_key_id, key, request_id, body_hash)
      select k.account_id, k.api_key_id, k.key, k.id, k.body_hash from unnest(keyed) k where (select true from open_request o where o.id = k.id);
  end if;
  if cardinality(kept) > 0 then
    insert into request_payload (id, payload, metadata, webhook, webhook_events)
      select k.id, k.payload, k.metadata, k.webhook, k.webhook_events from unnest(kept) k where (select true from open_request o where o.id = k.id);
  end if;
  if cardinality(ways) > 0 then
    insert into request_way select w.* from unnest(ways) w where (select true from open_request o where o.id = w.id);
  end if;
end $$;
