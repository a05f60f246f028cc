-- I10, for outputs.py: kept outputs that are media, which are msgpack arrays whose first element is the tag 3 or 4, and who won.
select 'req_' || replace(r.id::text, '-', '') as id, r.output, u.attempt, r.expires_at <= now() as expired
from request_output r join usage u on u.id = r.id
where (get_byte(r.output, 0) & 240) = 144 and get_byte(r.output, 1) in (3, 4)
