-- What counts against a new budget of keys beside the charges: the holds of open requests, less refunds.
-- $1  bigint[]     the keys
-- $2  timestamptz  from when on the requests were admitted
select coalesce((
  select sum(o.hold_nanos) from open_request o where o.api_key_id = any ($1::bigint[]) and o.created_at >= $2::timestamptz
), 0)::bigint - coalesce((
  select sum(r.amount_nanos) from refund r join usage u on u.id = r.request_id
  where r.api_key_id = any ($1::bigint[]) and r.at >= $2::timestamptz and u.created_at >= $2::timestamptz
), 0)::bigint
