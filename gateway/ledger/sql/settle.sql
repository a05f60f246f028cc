-- settle: charges ended requests, many in one transaction. The first settlement of a request deletes its open row; every later one
-- finds none and changes nothing.
--
-- ids       uuid[]    the requests, each once, in ascending order
-- versions  int[]     the price version that each was rated at
-- endings   ending[]  how each ended
-- keep_s    int       seconds for which outputs are kept
--
-- n         int[]     the positions (from 1) of the requests that were settled now
-- charge    bigint[]  what each was charged: never more than its hold
-- hold      bigint[]  what had been set aside for each
-- A position that is missing was settled before, or has another price version than the one given, or was never admitted.
--
-- Locks: open requests in id order, then accounts in id order, then what belongs to the accounts (keys, rollups): those statements
-- wait for `moved` by asking for its count.
-- The open rows are found by their index, never by a join: a plan that was made while the table was empty would read all of it for
-- every batch. width_bucket is a binary search for the position of an id.
create or replace function settle(ids uuid[], versions int[], endings ending[], keep_s int, out n int[], out charge bigint[], out hold bigint[])
language plpgsql volatile as $$
#variable_conflict use_column
declare
  keeping int[];
begin
  with deleted as (
    delete from open_request o
    where o.id = any (ids) and o.price_version_id = versions[width_bucket(o.id, ids)]
    returning o.*, width_bucket(o.id, ids) as n
  ), gone as materialized (
    select d.*, least(e.charge, d.hold_nanos) as charge, e.outcome, e.reason, e.attempt, e.forward_began, e.worker,
      e.input_tokens, e.cached_tokens, e.output_tokens, e.reasoning_tokens, e.characters, e.images, e.pixels, e.steps, e.audio_ms, e.video_ms,
      e.queue_us, e.load_us, e.preprocess_us, e.transfer_us, e.forward_us, e.postprocess_us, e.store_us
    from deleted d join unnest(endings) with ordinality e on e.ordinality = d.n
  ), used as (
    insert into usage (id, account_id, api_key_id, created_at, finished_at, hold_nanos, charge_nanos,
      input_tokens, cached_tokens, output_tokens, reasoning_tokens, characters, images, pixels, steps, audio_ms, video_ms,
      queue_us, load_us, preprocess_us, transfer_us, forward_us, postprocess_us, store_us,
      model_id, price_version_id, task, outcome, reason, attempt, forward_began, pool, worker)
    select id, account_id, api_key_id, created_at, now(), hold_nanos, charge,
      input_tokens, cached_tokens, output_tokens, reasoning_tokens, characters, images, pixels, steps, audio_ms, video_ms,
      queue_us, load_us, preprocess_us, transfer_us, forward_us, postprocess_us, store_us,
      model_id, price_version_id, task, outcome, reason, attempt, forward_began, pool, worker
    from gone
  ), booked as (
    insert into ledger_entry (at, transaction_id, account_id, amount_nanos, kind)
    select now(), g.id, s.account_id, s.amount_nanos, 0
    from gone g cross join lateral (values (g.account_id, -g.charge), (0, g.charge)) as s (account_id, amount_nanos)
  ), summed as materialized (
    select account_id, api_key_id, model_id, task, outcome, count(*) as requests, sum(hold_nanos)::bigint as hold, sum(charge)::bigint as charge,
      sum(queue_us + load_us + preprocess_us + transfer_us + forward_us + postprocess_us + store_us)::bigint as latency_us,
      sum(input_tokens)::bigint as input_tokens, sum(cached_tokens)::bigint as cached_tokens, sum(output_tokens)::bigint as output_tokens,
      sum(reasoning_tokens)::bigint as reasoning_tokens, sum(characters)::bigint as characters, sum(images)::bigint as images,
      sum(pixels)::bigint as pixels, sum(steps)::bigint as steps, sum(audio_ms)::bigint as audio_ms, sum(video_ms)::bigint as video_ms
    from gone group by 1, 2, 3, 4, 5
  ), moved as (
    update account a set held_nanos = a.held_nanos - s.hold, available_nanos = a.available_nanos + s.hold - s.charge,
      spent_nanos = a.spent_nanos + s.charge
    from (select account_id, sum(hold)::bigint as hold, sum(charge)::bigint as charge from summed group by 1 order by 1) s
    where a.id = s.account_id
    returning a.id
  ), counted as (
    update api_key k set used_nanos = greatest(k.used_nanos - s.back, 0)
    from (select api_key_id, sum(hold - charge)::bigint as back from summed where (select count(*) from moved) > 0 group by 1 order by 1) s
    where k.id = s.api_key_id and s.back > 0
  ), rolled as (
    insert into usage_rollup as r (hour, account_id, api_key_id, model_id, task, outcome, requests, charge_nanos, latency_us,
      input_tokens, cached_tokens, output_tokens, reasoning_tokens, characters, images, pixels, steps, audio_ms, video_ms)
    select date_trunc('hour', now(), 'UTC'), account_id, api_key_id, model_id, task, outcome, requests, charge, latency_us,
      input_tokens, cached_tokens, output_tokens, reasoning_tokens, characters, images, pixels, steps, audio_ms, video_ms
    from summed where (select count(*) from moved) > 0 order by 2, 3, 4, 5, 6
    on conflict (hour, account_id, api_key_id, model_id, task, outcome) do update set
      requests = r.requests + excluded.requests, charge_nanos = r.charge_nanos + excluded.charge_nanos,
      latency_us = r.latency_us + excluded.latency_us,
      input_tokens = r.input_tokens + excluded.input_tokens, cached_tokens = r.cached_tokens + excluded.cached_tokens,
      output_tokens = r.output_tokens + excluded.output_tokens, reasoning_tokens = r.reasoning_tokens + excluded.reasoning_tokens,
      characters = r.characters + excluded.characters, images = r.images + excluded.images, pixels = r.pixels + excluded.pixels,
      steps = r.steps + excluded.steps, audio_ms = r.audio_ms + excluded.audio_ms, video_ms = r.video_ms + excluded.video_ms
  )
  select coalesce(array_agg(g.n), '{}'), coalesce(array_agg(g.charge), '{}'), coalesce(array_agg(g.hold_nanos), '{}'),
    array_agg(g.n) filter (where g.keep)
  into n, charge, hold, keeping from gone g;

  if keeping is not null then
    insert into request_output (id, output, detail, metadata, expires_at)
      select ids[e.ordinality], e.output, coalesce(e.detail, ''),
        (select p.metadata from request_payload p where p.id = ids[e.ordinality]), now() + keep_s * interval '1 second'
      from unnest(endings) with ordinality e where e.ordinality = any (keeping);
    delete from request_payload p where p.id = any (array(select ids[k] from unnest(keeping) k));
  end if;
end $$;
