-- One day (UTC) in all its dimensions, once its last hour is closed.
-- $1 from (timestamptz)  $2 to, exclusive
insert into rollup_day (day, account_id, api_key_id, model_id, task, outcome, route,
  requests, charge_nanos, cost_nanos, uncosted, gpu_us, latency_us,
  input_tokens, cached_tokens, output_tokens, reasoning_tokens, characters, images, pixels, steps, audio_ms, video_ms,
  latencies)
select (hour at time zone 'UTC')::date, account_id, api_key_id, model_id, task, outcome, route,
  sum(requests), sum(charge_nanos), sum(cost_nanos), sum(uncosted), sum(gpu_us), sum(latency_us),
  sum(input_tokens), sum(cached_tokens), sum(output_tokens), sum(reasoning_tokens), sum(characters),
  sum(images), sum(pixels), sum(steps), sum(audio_ms), sum(video_ms),
  sum(latencies)
from usage_rollup where hour >= $1 and hour < $2
group by 1, 2, 3, 4, 5, 6, 7
