-- settle: charges ended requests, many in one transaction. The first settlement of a request deletes its open row; every later one
-- finds none and changes nothing. A request is charged at the price version of the way that it went, which must be one of those pinned
-- at its admission, under the terms pinned there.
--
-- ids       uuid[]    the requests, each once, in ascending order
-- versions  int[]     the price version that each was rated at
-- terms     jsonb[]   the terms that each was rated under; null for none
-- endings   ending[]  how each ended
-- attempts  attempt_row[]  what was tried and run inside them; their costs are recorded and charged to nobody
-- ways      way_end[]   those that ended elsewhere than where they were admitted to
-- keep_s    int       seconds for which outputs are kept, where an account does not say
--
-- n         int[]     the positions (from 1) of the requests that were settled now
-- charge    bigint[]  what each was charged: never more than its hold
-- hold      bigint[]  what had been set aside for each
-- A position that is missing was settled before, or has another price version or other terms than those given, or was never admitted.
--
-- Locks: open requests in id order, then accounts in id order, then what belongs to the accounts (keys, rollups): those statements
-- wait for `moved` by asking for its count.
-- The open rows are found by their index, never by a join: a plan that was made while the table was empty would read all of it for
-- every batch. width_bucket is a binary search for the position of an id.
create or replace function settle(
  ids uuid[], versions int[], terms jsonb[], endings ending[], attempts attempt_row[], ways way_end[], keep_s int,
  out n int[], out charge bigint[], out hold bigint[]
)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  keeping int[];
  payers bigint[];
  unused unused_share[];
  limited bigint[];
begin
  with deleted as (
    delete from open_request o
    where o.id = any (ids) and (o.price_version_id = versions[width_bucket(o.id, ids)]
      or versions[width_bucket(o.id, ids)] = any ((select w.prices from request_way w where w.id = o.id)::int[]))
      and o.terms is not distinct from settle.terms[width_bucket(o.id, ids)]
    returning o.*, width_bucket(o.id, ids) as n
  ), gone as materialized (
    select d.id, d.account_id, d.api_key_id, d.created_at, d.hold_nanos, d.task, d.keep, d.tokens, d.terms, d.n, versions[d.n] as price_version_id,
      coalesce(w.model_id, d.model_id) as model_id, coalesce(w.pool, d.pool) as pool, least(e.charge, d.hold_nanos) as charge,
      e.outcome, e.reason, e.attempt, e.forward_began, e.worker,
      e.input_tokens, e.cached_tokens, e.output_tokens, e.reasoning_tokens, e.characters, e.images, e.pixels, e.steps, e.audio_ms, e.video_ms,
      e.queue_us, e.load_us, e.preprocess_us, e.transfer_us, e.forward_us, e.postprocess_us, e.store_us,
      e.cost, e.gpu_us, e.route,
      e.queue_us + e.load_us + e.preprocess_us + e.transfer_us + e.forward_us + e.postprocess_us + e.store_us as latency_us
    from deleted d join unnest(endings) with ordinality e on e.ordinality = d.n left join unnest(ways) w on w.n = d.n
  ), used as (
    insert into usage (id, account_id, api_key_id, created_at, finished_at, hold_nanos, charge_nanos,
      input_tokens, cached_tokens, output_tokens, reasoning_tokens, characters, images, pixels, steps, audio_ms, video_ms,
      queue_us, load_us, preprocess_us, transfer_us, forward_us, postprocess_us, store_us,
      model_id, price_version_id, task, outcome, reason, attempt, forward_began, pool, worker,
      cost_nanos, gpu_us, route, terms)
    select id, account_id, api_key_id, created_at, now(), hold_nanos, charge,
      input_tokens, cached_tokens, output_tokens, reasoning_tokens, characters, images, pixels, steps, audio_ms, video_ms,
      queue_us, load_us, preprocess_us, transfer_us, forward_us, postprocess_us, store_us,
      model_id, price_version_id, task, outcome, reason, attempt, forward_began, pool, worker,
      cost, gpu_us, route, terms
    from gone
  ), booked as (
    insert into ledger_entry (at, transaction_id, account_id, amount_nanos, kind)
    select now(), g.id, s.account_id, s.amount_nanos, 0
    from gone g cross join lateral (values (g.account_id, -g.charge), (0, g.charge)) as s (account_id, amount_nanos)
  ), summed as materialized (
    select account_id, api_key_id, model_id, task, outcome, route, count(*) as requests, sum(hold_nanos)::bigint as hold, sum(charge)::bigint as charge,
      sum(latency_us)::bigint as latency_us, sum(latency_count(latency_us)) as latencies,
      sum(input_tokens)::bigint as input_tokens, sum(cached_tokens)::bigint as cached_tokens, sum(output_tokens)::bigint as output_tokens,
      sum(reasoning_tokens)::bigint as reasoning_tokens, sum(characters)::bigint as characters, sum(images)::bigint as images,
      sum(pixels)::bigint as pixels, sum(steps)::bigint as steps, sum(audio_ms)::bigint as audio_ms, sum(video_ms)::bigint as video_ms,
      coalesce(sum(cost), 0)::bigint as cost, count(*) - count(cost) as uncosted, sum(gpu_us)::bigint as gpu_us
    from gone group by 1, 2, 3, 4, 5, 6
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
    insert into usage_rollup as r (hour, account_id, api_key_id, model_id, task, outcome, route, requests, charge_nanos, latency_us,
      input_tokens, cached_tokens, output_tokens, reasoning_tokens, characters, images, pixels, steps, audio_ms, video_ms, cost_nanos, uncosted, gpu_us,
      latencies)
    select date_trunc('hour', now(), 'UTC'), account_id, api_key_id, model_id, task, outcome, route, requests, charge, latency_us,
      input_tokens, cached_tokens, output_tokens, reasoning_tokens, characters, images, pixels, steps, audio_ms, video_ms, cost, uncosted, gpu_us, latencies
    from summed where (select count(*) from moved) > 0 order by 2, 3, 4, 5, 6, 7
    on conflict (hour, account_id, api_key_id, model_id, task, outcome, route) do update set
      requests = r.requests + excluded.requests, charge_nanos = r.charge_nanos + excluded.charge_nanos,
      latency_us = r.latency_us + excluded.latency_us,
      input_tokens = r.input_tokens + excluded.input_tokens, cached_tokens = r.cached_tokens + excluded.cached_tokens,
      output_tokens = r.output_tokens + excluded.output_tokens, reasoning_tokens = r.reasoning_tokens + excluded.reasoning_tokens,
      characters = r.characters + excluded.characters, images = r.images + excluded.images, pixels = r.pixels + excluded.pixels,
      steps = r.steps + excluded.steps, audio_ms = r.audio_ms + excluded.audio_ms, video_ms = r.video_ms + excluded.video_ms,
      cost_nanos = r.cost_nanos + excluded.cost_nanos, uncosted = r.uncosted + excluded.uncosted, gpu_us = r.gpu_us + excluded.gpu_us,
      latencies = r.latencies + excluded.latencies
  )
  select coalesce(array_agg(g.n), '{}'), coalesce(array_agg(g.charge), '{}'), coalesce(array_agg(g.hold_nanos), '{}'),
    array_agg(g.n) filter (where g.keep), array_agg(g.account_id) filter (where g.keep),
    array_agg((g.account_id, g.api_key_id, g.created_at, g.hold_nanos - g.charge, g.tokens - g.input_tokens - g.output_tokens)::unused_share)
  into n, charge, hold, keeping, payers, unused from gone g;

  -- Statements of their own, which see whether there are limits now that the accounts are locked.
  if unused is not null then
    limited := array(select a.id from account a where a.limited and a.id = any (array(select u.account_id from unnest(unused) u)));
    if cardinality(limited) > 0 then
      perform return_limits(0, limited, unused);
    end if;
    limited := array(select k.id from api_key k where k.limited and k.id = any (array(select u.api_key_id from unnest(unused) u)));
    if cardinality(limited) > 0 then
      perform return_limits(1, limited, unused);
    end if;
  end if;

  if cardinality(attempts) > 0 then
    insert into attempt
      select ids[s.n], s.number, s.name, s.model, s.step_id, s.pool, s.worker, s.attempt, s.outcome, s.reason, s.cost_nanos,
        s.input_tokens, s.cached_tokens, s.output_tokens, s.reasoning_tokens, s.characters, s.images, s.pixels, s.steps, s.audio_ms, s.video_ms,
        s.queue_us, s.load_us, s.preprocess_us, s.transfer_us, s.forward_us, s.postprocess_us, s.store_us,
        s.upstream, s.estimated, s.detail, s.gpu_us
      from unnest(attempts) s where s.n = any (settle.n);
  end if;

  -- Most requests have one way only, and this table is nearly always empty.
  if exists (select from request_way) then
    delete from request_way w where w.id = any (array(select ids[k] from unnest(settle.n) k));
  end if;

  if keeping is not null then
    with removed as (
      delete from request_payload p where p.id = any (array(select ids[k] from unnest(keeping) k))
      returning p.id, p.metadata, p.webhook, p.webhook_events, width_bucket(p.id, ids) as n
    ), stored as (
      insert into request_output (id, output, detail, metadata, webhook, expires_at)
      select ids[e.ordinality], e.output, coalesce(e.detail, ''), r.metadata,
        case when 'completed' = any (r.webhook_events) then r.webhook end,
        now() + coalesce((select a.keep_media_s from account a where a.id = payers[array_position(keeping, e.ordinality::int)]), keep_s)
          * interval '1 second'
      from unnest(endings) with ordinality e left join removed r on r.n = e.ordinality where e.ordinality = any (keeping)
    )
    insert into webhook_event (request_id, kind, number, account_id, url, host, due_at)
      select r.id, k.kind, 0, payers[array_position(keeping, r.n)], r.webhook, webhook_host(r.webhook), now()
      from removed r
      cross join lateral (values (0::smallint, 'started', (endings[r.n]).worker <> ''), (2::smallint, 'completed', true)) k (kind, name, happened)
      where r.webhook is not null and k.name = any (r.webhook_events) and k.happened
      on conflict (request_id, kind, number) do nothing;
  end if;
end $$;
