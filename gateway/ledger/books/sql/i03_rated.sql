-- I3, for rating.py: the finished requests that were measured and charged alike, how many, and one of them.
select price_version_id, outcome, forward_began, hold_nanos, charge_nanos,
  input_tokens, cached_tokens, output_tokens, reasoning_tokens, characters, images, pixels, steps, audio_ms, video_ms,
  count(*) as requests, 'req_' || replace(min(id::text), '-', '') as example
from usage
group by price_version_id, outcome, forward_began, hold_nanos, charge_nanos,
  input_tokens, cached_tokens, output_tokens, reasoning_tokens, characters, images, pixels, steps, audio_ms, video_ms
