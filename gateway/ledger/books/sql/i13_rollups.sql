-- I13: rollups = sums over usage, in every measure, for every hour (UTC), key, model, task, outcome and route.
-- $1, $2: of the hours from one on to before another.
with summed as (
  select date_trunc('hour', finished_at, 'UTC') as hour, account_id, api_key_id, model_id, task, outcome, route,
    count(*) as requests, sum(charge_nanos) as charge_nanos,
    sum(latency) as latency_us,
    sum(input_tokens) as input_tokens, sum(cached_tokens) as cached_tokens, sum(output_tokens) as output_tokens,
    sum(reasoning_tokens) as reasoning_tokens, sum(characters) as characters, sum(images) as images, sum(pixels) as pixels,
    sum(steps) as steps, sum(audio_ms) as audio_ms, sum(video_ms) as video_ms,
    coalesce(sum(cost_nanos), 0) as cost_nanos, count(*) - count(cost_nanos) as uncosted, sum(gpu_us) as gpu_us,
    sum(latency_count(latency)) as latencies
  from (
    select *, queue_us + load_us + preprocess_us + transfer_us + forward_us + postprocess_us + store_us as latency from usage
    where finished_at >= $1::timestamptz and finished_at < $2::timestamptz
  ) timed
  group by 1, 2, 3, 4, 5, 6, 7
), pairs as (
  select coalesce(r.hour, s.hour) as hour, coalesce(r.api_key_id, s.api_key_id) as api_key_id, coalesce(r.model_id, s.model_id) as model_id,
    r.charge_nanos as left_figure, s.charge_nanos as right_figure,
    ((r.requests, r.charge_nanos, r.latency_us, r.input_tokens, r.cached_tokens, r.output_tokens, r.reasoning_tokens,
      r.characters, r.images, r.pixels, r.steps, r.audio_ms, r.video_ms, r.cost_nanos, r.uncosted, r.gpu_us, r.latencies)
    = (s.requests, s.charge_nanos, s.latency_us, s.input_tokens, s.cached_tokens, s.output_tokens, s.reasoning_tokens,
      s.characters, s.images, s.pixels, s.steps, s.audio_ms, s.video_ms, s.cost_nanos, s.uncosted, s.gpu_us, s.latencies)) is true as equal
  from (select * from usage_rollup where hour >= $1::timestamptz and hour < $2::timestamptz) r full join summed s using (hour, account_id, api_key_id, model_id, task, outcome, route)
)
select coalesce(sum(left_figure), 0) as left_figure, coalesce(sum(right_figure), 0) as right_figure,
  count(*) filter (where not equal) as broken,
  (array_agg(to_char(hour at time zone 'UTC', 'YYYY-MM-DD"T"HH24"Z"') || ' key ' || api_key_id || ' model ' || model_id)
    filter (where not equal))[1:10] as offenders
from pairs
