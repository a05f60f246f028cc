-- What keys were charged for requests that were admitted from an instant on, less refunds of them.
-- $1  bigint[]     the keys
-- $2  timestamptz  from when on they were admitted
-- $3  timestamptz  only those that finished from here on
-- $4  timestamptz  and before here
--
-- The ids of requests begin with the milliseconds of their making, a little before their admission and by another clock: a day is more
-- than enough for both, and the index of keys and ids leaves all older rows unread.
select coalesce((
  select sum(u.charge_nanos) from usage u
  where u.api_key_id = any ($1::bigint[]) and u.created_at >= $2::timestamptz and u.finished_at >= $3::timestamptz and u.finished_at < $4::timestamptz
    and u.id >= (lpad(to_hex((extract(epoch from $2::timestamptz - interval '1 day') * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
), 0)::bigint
