-- What statements say of hours, added to their day (UTC). Units are those of requests that were charged.
-- $1 from (timestamptz)  $2 to, exclusive
insert into rollup_day_charge as r (account_id, day, api_key_id, model_id, price_version_id, terms,
  requests, free, rated, charge_nanos,
  input_tokens, cached_tokens, output_tokens, reasoning_tokens, characters, images, pixels, steps, audio_ms, video_ms)
select account_id, (finished_at at time zone 'UTC')::date, api_key_id, model_id, price_version_id, terms,
  count(*), count(*) filter (where charge_nanos = 0),
  count(*) filter (where charge_nanos > 0 and (outcome = 0 or forward_began)), sum(charge_nanos),
  coalesce(sum(input_tokens) filter (where charge_nanos > 0), 0), coalesce(sum(cached_tokens) filter (where charge_nanos > 0), 0),
  coalesce(sum(output_tokens) filter (where charge_nanos > 0), 0), coalesce(sum(reasoning_tokens) filter (where charge_nanos > 0), 0),
  coalesce(sum(characters) filter (where charge_nanos > 0), 0), coalesce(sum(images) filter (where charge_nanos > 0), 0),
  coalesce(sum(pixels) filter (where charge_nanos > 0), 0), coalesce(sum(steps) filter (where charge_nanos > 0), 0),
  coalesce(sum(audio_ms) filter (where charge_nanos > 0), 0), coalesce(sum(video_ms) filter (where charge_nanos > 0), 0)
from usage where finished_at >= $1 and finished_at < $2
group by 1, 2, 3, 4, 5, 6
on conflict (account_id, day, api_key_id, model_id, price_version_id, terms) do update set
  requests = r.requests + excluded.requests, free = r.free + excluded.free,
  rated = r.rated + excluded.rated, charge_nanos = r.charge_nanos + excluded.charge_nanos,
  input_tokens = r.input_tokens + excluded.input_tokens, cached_tokens = r.cached_tokens + excluded.cached_tokens,
  output_tokens = r.output_tokens + excluded.output_tokens, reasoning_tokens = r.reasoning_tokens + excluded.reasoning_tokens,
  characters = r.characters + excluded.characters, images = r.images + excluded.images,
  pixels = r.pixels + excluded.pixels, steps = r.steps + excluded.steps,
  audio_ms = r.audio_ms + excluded.audio_ms, video_ms = r.video_ms + excluded.video_ms
