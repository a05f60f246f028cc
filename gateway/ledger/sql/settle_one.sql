-- settle_one: the rules of `settle` for one request. Answers its charge and its hold, or nulls when it was not settled now.
--
-- request  uuid    its id
-- version  int     the price version that it was rated at
-- terms    jsonb   the terms that it was rated under; null for none
-- e        ending  how it ended
-- attempts attempt_row[]  what was tried and run inside it
-- way      way_end  where it ended, if that is elsewhere than where it was admitted to; else null
-- keep_s   int     seconds for which an output is kept, where its account does not say
create or replace function settle_one(
  request uuid, version int, terms jsonb, e ending, attempts attempt_row[], way way_end, keep_s int, out charge bigint, out hold bigint
)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  o open_request;
  c bigint;
  p request_payload;
  payer_limited boolean;
  caller_limited boolean;
  unused unused_share;
  latency_us bigint := e.queue_us + e.load_us + e.preprocess_us + e.transfer_us + e.forward_us + e.postprocess_us + e.store_us;
begin
  delete from open_request r
    where r.id = request
      and (r.price_version_id = version or version = any ((select w.prices from request_way w where w.id = r.id)::int[]))
      and r.terms is not distinct from settle_one.terms
    returning * into o;
  if not found then
    return;
  end if;
  c := least(e.charge, o.hold_nanos);
  o.price_version_id := version;
  o.model_id := coalesce(way.model_id, o.model_id);
  o.pool := coalesce(way.pool, o.pool);

  insert into usage (id, account_id, api_key_id, created_at, finished_at, hold_nanos, charge_nanos,
    input_tokens, cached_tokens, output_tokens, reasoning_tokens, characters, images, pixels, steps, audio_ms, video_ms,
    queue_us, load_us, preprocess_us, transfer_us, forward_us, postprocess_us, store_us,
    model_id, price_version_id, task, outcome, reason, attempt, forward_began, pool, worker,
    cost_nanos, gpu_us, route, terms)
  values (o.id, o.account_id, o.api_key_id, o.created_at, now(), o.hold_nanos, c,
    e.input_tokens, e.cached_tokens, e.output_tokens, e.reasoning_tokens, e.characters, e.images, e.pixels, e.steps, e.audio_ms, e.video_ms,
    e.queue_us, e.load_us, e.preprocess_us, e.transfer_us, e.forward_us, e.postprocess_us, e.store_us,
    o.model_id, o.price_version_id, o.task, e.outcome, e.reason, e.attempt, e.forward_began, o.pool, e.worker,
    e.cost, e.gpu_us, e.route, o.terms);

  insert into ledger_entry (at, transaction_id, account_id, amount_nanos, kind)
  values (now(), o.id, o.account_id, -c, 0), (now(), o.id, 0, c, 0);

  update account a set held_nanos = a.held_nanos - o.hold_nanos, available_nanos = a.available_nanos + o.hold_nanos - c,
    spent_nanos = a.spent_nanos + c
  where a.id = o.account_id
  returning a.limited into payer_limited;

  update api_key k set used_nanos = greatest(k.used_nanos - (o.hold_nanos - c), 0) where k.id = o.api_key_id and o.hold_nanos > c;

  insert into usage_rollup as r (hour, account_id, api_key_id, model_id, task, outcome, route, requests, charge_nanos, latency_us,
    input_tokens, cached_tokens, output_tokens, reasoning_tokens, characters, images, pixels, steps, audio_ms, video_ms, cost_nanos, uncosted, gpu_us,
    latencies)
  values (date_trunc('hour', now(), 'UTC'), o.account_id, o.api_key_id, o.model_id, o.task, e.outcome, e.route, 1, c, latency_us,
    e.input_tokens, e.cached_tokens, e.output_tokens, e.reasoning_tokens, e.characters, e.images, e.pixels, e.steps, e.audio_ms, e.video_ms,
    coalesce(e.cost, 0), (e.cost is null)::int, e.gpu_us, latency_count(latency_us))
  on conflict (hour, account_id, api_key_id, model_id, task, outcome, route) do update set
    requests = r.requests + excluded.requests, charge_nanos = r.charge_nanos + excluded.charge_nanos,
    latency_us = r.latency_us + excluded.latency_us,
    input_tokens = r.input_tokens + excluded.input_tokens, cached_tokens = r.cached_tokens + excluded.cached_tokens,
    output_tokens = r.output_tokens + excluded.output_tokens, reasoning_tokens = r.reasoning_tokens + excluded.reasoning_tokens,
    characters = r.characters + excluded.characters, images = r.images + excluded.images, pixels = r.pixels + excluded.pixels,
    steps = r.steps + excluded.steps, audio_ms = r.audio_ms + excluded.audio_ms, video_ms = r.video_ms + excluded.video_ms,
    cost_nanos = r.cost_nanos + excluded.cost_nanos, uncosted = r.uncosted + excluded.uncosted, gpu_us = r.gpu_us + excluded.gpu_us,
    latencies = r.latencies + excluded.latencies;

  caller_limited := (select k.limited from api_key k where k.id = o.api_key_id);
  if payer_limited or caller_limited then
    unused := (o.account_id, o.api_key_id, o.created_at, o.hold_nanos - c, o.tokens - e.input_tokens - e.output_tokens);
    if payer_limited then
      perform return_limits(0, array[o.account_id], array[unused]);
    end if;
    if caller_limited then
      perform return_limits(1, array[o.api_key_id], array[unused]);
    end if;
  end if;

  if cardinality(attempts) > 0 then
    insert into attempt
      select o.id, s.number, s.name, s.model, s.step_id, s.pool, s.worker, s.attempt, s.outcome, s.reason, s.cost_nanos,
        s.input_tokens, s.cached_tokens, s.output_tokens, s.reasoning_tokens, s.characters, s.images, s.pixels, s.steps, s.audio_ms, s.video_ms,
        s.queue_us, s.load_us, s.preprocess_us, s.transfer_us, s.forward_us, s.postprocess_us, s.store_us,
        s.upstream, s.estimated, s.detail, s.gpu_us
      from unnest(attempts) s;
  end if;

  delete from request_way w where w.id = o.id;
  if o.keep then
    delete from request_payload r where r.id = o.id returning * into p;
    insert into request_output (id, output, detail, metadata, webhook, expires_at)
    values (o.id, e.output, coalesce(e.detail, ''), p.metadata, case when 'completed' = any (p.webhook_events) then p.webhook end,
      now() + coalesce((select a.keep_media_s from account a where a.id = o.account_id), keep_s) * interval '1 second');
    if p.webhook is not null then
      insert into webhook_event (request_id, kind, number, account_id, url, host, due_at)
        select o.id, k.kind, 0, o.account_id, p.webhook, webhook_host(p.webhook), now()
        from (values (0::smallint, 'started', e.worker <> ''), (2::smallint, 'completed', true)) k (kind, name, happened)
        where k.name = any (p.webhook_events) and k.happened
        on conflict (request_id, kind, number) do nothing;
    end if;
  end if;
  charge := c;
  hold := o.hold_nanos;
end $$;
