-- I13: the sums of models in closed hours = those of their parts, in every measure.
-- $1, $2: of the hours from one on to before another.
with summed as (
  select hour, model_id, task, outcome, route,
    sum(requests) as requests, sum(charge_nanos) as charge_nanos, sum(cost_nanos) as cost_nanos, sum(uncosted) as uncosted, sum(gpu_us) as gpu_us, sum(latency_us) as latency_us,
    sum(input_tokens) as input_tokens, sum(cached_tokens) as cached_tokens, sum(output_tokens) as output_tokens, sum(reasoning_tokens) as reasoning_tokens, sum(characters) as characters,
    sum(images) as images, sum(pixels) as pixels, sum(steps) as steps, sum(audio_ms) as audio_ms, sum(video_ms) as video_ms,
    sum(latencies) as latencies
  from usage_rollup where hour >= $1::timestamptz and hour < least($2::timestamptz, (select closed_through from rollup_state))
  group by 1, 2, 3, 4, 5
), pairs as (
  select coalesce(c.hour, s.hour) as at, coalesce(c.model_id, s.model_id) as model_id,
    c.charge_nanos as left_figure, s.charge_nanos as right_figure,
    ((c.requests, c.charge_nanos, c.cost_nanos, c.uncosted, c.gpu_us, c.latency_us, c.input_tokens, c.cached_tokens,
      c.output_tokens, c.reasoning_tokens, c.characters, c.images, c.pixels, c.steps, c.audio_ms, c.video_ms, c.latencies)
    = (s.requests, s.charge_nanos, s.cost_nanos, s.uncosted, s.gpu_us, s.latency_us, s.input_tokens, s.cached_tokens,
      s.output_tokens, s.reasoning_tokens, s.characters, s.images, s.pixels, s.steps, s.audio_ms, s.video_ms, s.latencies)) is true as equal
  from (select * from rollup_hour_model where hour >= $1::timestamptz and hour < $2::timestamptz) c full join summed s using (hour, model_id, task, outcome, route)
)
select coalesce(sum(left_figure), 0) as left_figure, coalesce(sum(right_figure), 0) as right_figure,
  count(*) filter (where not equal) as broken,
  (array_agg(to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24"Z"') || ' model ' || model_id) filter (where not equal))[1:10] as offenders
from pairs
