-- admit_one: the rules of `admit` for one request with neither idempotency key nor payload, whose owners are thought to have no limits.
-- Answers null when it was admitted, else its verdict: unauthorized | balance | budget | limited. The last means that they have: ask `admit`.
--
-- o        opening  the request
-- opener   text     the gateway
--
-- Judges and moves in one UPDATE of one row, which Postgres checks again on the newest version of that row.
create or replace function admit_one(o opening, opener text) returns text
language plpgsql volatile as $$
begin
  update account a set available_nanos = a.available_nanos - o.hold, held_nanos = a.held_nanos + o.hold
    where a.id = o.account_id and a.suspended_at is null and not a.limited and (o.hold = 0 or o.hold <= a.available_nanos + a.credit_limit_nanos);
  if not found then
    return coalesce((
      select case when a.limited then 'limited' else 'balance' end from account a join api_key k on k.account_id = a.id
      where a.id = o.account_id and k.id = o.api_key_id and a.suspended_at is null and k.revoked_at is null and (k.expires_at <= now()) is not true
    ), 'unauthorized');
  end if;

  update api_key k set used_nanos = k.used_nanos + o.hold, last_used_at = now()
    where k.id = o.api_key_id and k.account_id = o.account_id and k.revoked_at is null and (k.expires_at <= now()) is not true
      and not k.limited and (o.hold = 0 or k.budget_nanos is null or o.hold <= k.budget_nanos - k.used_nanos);
  if not found then
    update account a set available_nanos = a.available_nanos + o.hold, held_nanos = a.held_nanos - o.hold where a.id = o.account_id;
    return coalesce((
      select case when k.limited then 'limited' else 'budget' end from api_key k
      where k.id = o.api_key_id and k.account_id = o.account_id and k.revoked_at is null and (k.expires_at <= now()) is not true
    ), 'unauthorized');
  end if;

  insert into open_request (id, account_id, api_key_id, hold_nanos, deadline_at, model_id, price_version_id, task, keep, pool, gateway, tokens,
      terms)
    values (o.id, o.account_id, o.api_key_id, o.hold, now() + o.deadline_s * interval '1 second', o.model_id, o.price_version_id,
      o.task, o.keep, o.pool, opener, o.tokens, o.terms);
  return null;
end $$;
