-- admit_judged: the part of `admit` that judges each request and opens those that pass.
--
-- openings  opening[]     the requests; their order is the order of judgement
-- opener    text          the gateway
-- payers    bigint[]      the distinct accounts among them
-- keyed     keyed_call[]  those with an idempotency key
--
-- n         int           the position of a request that was not admitted
-- verdict   text          unauthorized | balance | budget | again | mismatch | in_flight | replay
-- original  uuid          for the last three: the request that has the idempotency key
--
-- `again` means: affordable alone, but not together with those before it in this call. Call again with it in front.
create or replace function admit_judged(openings opening[], opener text, payers bigint[], keyed keyed_call[])
returns table (n int, verdict text, original uuid)
language plpgsql volatile as $$
#variable_conflict use_column
begin
  -- A statement of its own: the next one sees the rows as locked. Lock and judgement in one statement once let
  -- near-empty accounts through beside settlements, and the CHECK then failed the whole batch.
  perform from account a where a.id = any (payers) order by a.id for no key update;

  return query
  with repeated as materialized (
    select f.n, (f.i).request_id, case
        when (f.i).body_hash <> f.body_hash then 'mismatch'
        when (select true from open_request o where o.id = (f.i).request_id) then 'in_flight'
        else 'replay' end as verdict
    from (
      select k.*, (select i from idempotency i where i.account_id = k.account_id and i.api_key_id = k.api_key_id and i.key = k.key) as i
      from unnest(keyed) k
    ) f where f.i is not null
  ), judged as materialized (
    select o.*, r.request_id as original, case
        when (k.account_id = a.id) is not true or a.suspended_at is not null or k.revoked_at is not null or k.expires_at <= now() then 'unauthorized'
        when r.n is not null then r.verdict
        when o.hold = 0 then 'admitted'
        when o.hold > a.available_nanos + a.credit_limit_nanos then 'balance'
        when o.hold > k.budget_nanos - k.used_nanos then 'budget'
        when sum(o.hold) over (partition by o.account_id order by o.ordinality) > a.available_nanos + a.credit_limit_nanos
          or sum(o.hold) over (partition by o.api_key_id order by o.ordinality) > k.budget_nanos - k.used_nanos then 'again'
        else 'admitted' end as verdict
    from unnest(openings) with ordinality as o left join account a on a.id = o.account_id left join api_key k on k.id = o.api_key_id
      left join repeated r on r.n = o.ordinality
  ), opened as (
    insert into open_request (id, account_id, api_key_id, hold_nanos, deadline_at, model_id, price_version_id, task, keep, pool, gateway)
    select id, account_id, api_key_id, hold, now() + deadline_s * interval '1 second', model_id, price_version_id, task, keep, pool, opener
    from judged where verdict = 'admitted'
  ), moved as (
    update account a set available_nanos = a.available_nanos - s.hold, held_nanos = a.held_nanos + s.hold
    from (select account_id, sum(hold)::bigint as hold from judged where verdict = 'admitted' group by 1) s where a.id = s.account_id
  ), counted as (
    update api_key k set used_nanos = k.used_nanos + s.hold, last_used_at = now()
    from (select api_key_id, sum(hold)::bigint as hold from judged where verdict = 'admitted' group by 1 order by 1) s where k.id = s.api_key_id
  )
  select j.ordinality::int, j.verdict, case when j.verdict in ('mismatch', 'in_flight', 'replay') then j.original end
  from judged j where j.verdict <> 'admitted';
end $$;
