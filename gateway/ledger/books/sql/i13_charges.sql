-- I13: the charges of closed hours by day, key, model, price version and terms = those of their usage rows, with all that statements say.
-- $1, $2: of the days that begin from one on to before another.
with summed as (
  select account_id, (finished_at at time zone 'UTC')::date as day, api_key_id, model_id, price_version_id, terms::text as terms,
    count(*) as requests, count(*) filter (where charge_nanos = 0) as free,
    count(*) filter (where charge_nanos > 0 and (outcome = 0 or forward_began)) as rated, sum(charge_nanos) as charge_nanos,
    coalesce(sum(input_tokens) filter (where charge_nanos > 0), 0) as input_tokens, coalesce(sum(cached_tokens) filter (where charge_nanos > 0), 0) as cached_tokens,
    coalesce(sum(output_tokens) filter (where charge_nanos > 0), 0) as output_tokens, coalesce(sum(reasoning_tokens) filter (where charge_nanos > 0), 0) as reasoning_tokens,
    coalesce(sum(characters) filter (where charge_nanos > 0), 0) as characters, coalesce(sum(images) filter (where charge_nanos > 0), 0) as images,
    coalesce(sum(pixels) filter (where charge_nanos > 0), 0) as pixels, coalesce(sum(steps) filter (where charge_nanos > 0), 0) as steps,
    coalesce(sum(audio_ms) filter (where charge_nanos > 0), 0) as audio_ms, coalesce(sum(video_ms) filter (where charge_nanos > 0), 0) as video_ms
  from usage where finished_at >= date_trunc('day', $1::timestamptz + interval '23 hours', 'UTC')
    and finished_at < least($2::timestamptz, (select greatest(closed_through, 'epoch') from rollup_state))
  group by 1, 2, 3, 4, 5, usage.terms
), kept as (
  select account_id, day, api_key_id, model_id, price_version_id, terms::text as terms, requests, free, rated, charge_nanos,
    input_tokens, cached_tokens, output_tokens, reasoning_tokens, characters, images, pixels, steps, audio_ms, video_ms
  from rollup_day_charge where day >= (($1::timestamptz + interval '23 hours') at time zone 'UTC')::date and day < ($2::timestamptz at time zone 'UTC')::date
), pairs as (
  select day as at, api_key_id,
    c.charge_nanos as left_figure, s.charge_nanos as right_figure,
    ((c.requests, c.free, c.rated, c.charge_nanos, c.input_tokens, c.cached_tokens, c.output_tokens, c.reasoning_tokens,
      c.characters, c.images, c.pixels, c.steps, c.audio_ms, c.video_ms)
    = (s.requests, s.free, s.rated, s.charge_nanos, s.input_tokens, s.cached_tokens, s.output_tokens, s.reasoning_tokens,
      s.characters, s.images, s.pixels, s.steps, s.audio_ms, s.video_ms)) is true as equal
  from (select *, coalesce(terms, '') as told from kept) c
  full join (select *, coalesce(terms, '') as told from summed) s using (account_id, day, api_key_id, model_id, price_version_id, told)
)
select coalesce(sum(left_figure), 0) as left_figure, coalesce(sum(right_figure), 0) as right_figure,
  count(*) filter (where not equal) as broken,
  (array_agg(at || ' key ' || api_key_id) filter (where not equal))[1:10] as offenders
from pairs
