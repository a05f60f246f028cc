-- What has changed among the keys since a revision, in one snapshot.
-- $1  the revision that was seen; -1 for all.
-- Answers at least one row: the revision now, and beside it a changed key or nulls. `live` is false for a
-- key that is revoked or whose account is suspended. Expired keys are left out of a first reading.
select r.keys as revision, k.id, k.hash, k.name, k.account_id, k.expires_at, k.live, k.account_name, k.price_list_id, k.discount_ppm,
  k.models, k.addresses, k.limited
from revision r
left join lateral (
  select k.id, k.hash, k.name, k.account_id, k.expires_at, a.name as account_name, a.price_list_id, a.discount_ppm,
    k.models, k.addresses, k.limited or a.limited as limited,
    k.revoked_at is null and a.suspended_at is null as live
  from api_key k join account a on a.id = k.account_id
  where k.revision > $1
    and ($1 >= 0 or (k.revoked_at is null and (k.expires_at is null or k.expires_at > now())))
  order by k.revision
) k on true
