-- Sums of usage over whole hours, from the rollups alone.
-- $1 from (timestamptz)  $2 to, exclusive  $3 text[]: the dimensions to group by
-- $4 account id or null  $5 key id or null  $6 model name or null  $7 task or null  $8 outcome or null
-- $9 the most rows to answer
-- Answers one row a group that was used; a dimension that is not grouped by is null.
select g.day, g.hour, g.account_id, g.key_id, g.model_id, g.task, g.outcome,
  (select a.name from account a where a.id = g.account_id) as account_name,
  (select k.name from api_key k where k.id = g.key_id) as key_name,
  (select m.name from model m where m.id = g.model_id) as model,
  g.requests, g.charge_nanos, g.latency_us,
  g.input_tokens, g.cached_tokens, g.output_tokens, g.reasoning_tokens, g.characters,
  g.images, g.pixels, g.steps, g.audio_ms, g.video_ms
from (
  select
    case when 'day' = any($3::text[]) then date_trunc('day', r.hour, 'UTC') end as day,
    case when 'hour' = any($3::text[]) then r.hour end as hour,
    case when 'account' = any($3::text[]) then r.account_id end as account_id,
    case when 'key' = any($3::text[]) then r.api_key_id end as key_id,
    case when 'model' = any($3::text[]) then r.model_id end as model_id,
    case when 'task' = any($3::text[]) then r.task end as task,
    case when 'outcome' = any($3::text[]) then r.outcome end as outcome,
    sum(r.requests)::bigint as requests,
    sum(r.charge_nanos)::bigint as charge_nanos,
    sum(r.latency_us)::bigint as latency_us,
    sum(r.input_tokens)::bigint as input_tokens,
    sum(r.cached_tokens)::bigint as cached_tokens,
    sum(r.output_tokens)::bigint as output_tokens,
    sum(r.reasoning_tokens)::bigint as reasoning_tokens,
    sum(r.characters)::bigint as characters,
    sum(r.images)::bigint as images,
    sum(r.pixels)::bigint as pixels,
    sum(r.steps)::bigint as steps,
    sum(r.audio_ms)::bigint as audio_ms,
    sum(r.video_ms)::bigint as video_ms
  from usage_rollup r
  where r.hour >= $1::timestamptz and r.hour < $2::timestamptz
    and ($4::bigint is null or r.account_id = $4)
    and ($5::bigint is null or r.api_key_id = $5)
    and ($6::text is null or r.model_id = (select m.id from model m where m.name = $6))
    and ($7::smallint is null or r.task = $7)
    and ($8::smallint is null or r.outcome = $8)
  group by 1, 2, 3, 4, 5, 6, 7
  limit $9
) g
order by g.day, g.hour, g.account_id, g.key_id, model, g.task, g.outcome
