-- I3, for rating.py: the finished requests that were measured and charged alike, how many, and one of them.
-- $1, $2: of what ended from one instant on to before another.
select price_version_id, outcome, forward_began, terms::text as terms, hold_nanos, charge_nanos,
  input_tokens, cached_tokens, output_tokens, reasoning_tokens, characters, images, pixels, steps, audio_ms, video_ms,
  count(*) as requests, 'req_' || replace(min(id::text), '-', '') as example
from usage where finished_at >= $1::timestamptz and finished_at < $2::timestamptz
group by price_version_id, outcome, forward_began, usage.terms, hold_nanos, charge_nanos,
  input_tokens, cached_tokens, output_tokens, reasoning_tokens, characters, images, pixels, steps, audio_ms, video_ms
