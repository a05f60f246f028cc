-- Hours without models, tasks and routes.
-- $1 from (timestamptz)  $2 to, exclusive
insert into rollup_hour_key (hour, account_id, api_key_id, outcome,
  requests, charge_nanos, cost_nanos, uncosted, gpu_us, latency_us,
  input_tokens, cached_tokens, output_tokens, reasoning_tokens, characters, images, pixels, steps, audio_ms, video_ms,
  latencies)
select hour, account_id, api_key_id, outcome,
  sum(requests), sum(charge_nanos), sum(cost_nanos), sum(uncosted), sum(gpu_us), sum(latency_us),
  sum(input_tokens), sum(cached_tokens), sum(output_tokens), sum(reasoning_tokens), sum(characters),
  sum(images), sum(pixels), sum(steps), sum(audio_ms), sum(video_ms),
  sum(latencies)
from usage_rollup where hour >= $1 and hour < $2
group by 1, 2, 3, 4
