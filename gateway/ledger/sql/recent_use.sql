-- What keys asked for in the last minute, by second, and what of it is open: where the count of a new rate begins.
-- $1  bigint[]  the keys
with asked as (
  select o.created_at, o.tokens from open_request o where o.api_key_id = any ($1::bigint[])
    and o.created_at > clock_timestamp() - interval '61 seconds'
  union all
  select u.created_at, u.input_tokens + u.output_tokens from usage u where u.api_key_id = any ($1::bigint[])
    and u.finished_at > clock_timestamp() - interval '62 seconds' and u.created_at > clock_timestamp() - interval '61 seconds'
)
select floor(extract(epoch from a.created_at))::bigint as second, count(*) as requests, sum(a.tokens)::bigint as tokens
from asked a group by 1 order by 1
