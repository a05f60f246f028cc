-- I10, for outputs.py: kept outputs that are media, which are msgpack arrays of five whose first is the tag 3, and who won.
select 'req_' || replace(r.id::text, '-', '') as id, r.output, u.attempt, r.expires_at <= now() as expired
from request_output r join usage u on u.id = r.id
where substring(r.output from 1 for 2) = '\x9503'
