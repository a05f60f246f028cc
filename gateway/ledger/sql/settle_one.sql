-- settle_one: the rules of `settle` for one request. Answers its charge and its hold, or nulls when it was not settled now.
--
-- request  uuid    its id
-- version  int     the price version that it was rated at
-- e        ending  how it ended
-- keep_s   int     seconds for which an output is kept
create or replace function settle_one(request uuid, version int, e ending, keep_s int, out charge bigint, out hold bigint)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  o open_request;
  c bigint;
begin
  delete from open_request r where r.id = request and r.price_version_id = version returning * into o;
  if not found then
    return;
  end if;
  c := least(e.charge, o.hold_nanos);

  insert into usage (id, account_id, api_key_id, created_at, finished_at, hold_nanos, charge_nanos,
    input_tokens, cached_tokens, output_tokens, reasoning_tokens, characters, images, pixels, steps, audio_ms, video_ms,
    queue_us, load_us, preprocess_us, transfer_us, forward_us, postprocess_us, store_us,
    model_id, price_version_id, task, outcome, reason, attempt, forward_began, pool, worker)
  values (o.id, o.account_id, o.api_key_id, o.created_at, now(), o.hold_nanos, c,
    e.input_tokens, e.cached_tokens, e.output_tokens, e.reasoning_tokens, e.characters, e.images, e.pixels, e.steps, e.audio_ms, e.video_ms,
    e.queue_us, e.load_us, e.preprocess_us, e.transfer_us, e.forward_us, e.postprocess_us, e.store_us,
    o.model_id, o.price_version_id, o.task, e.outcome, e.reason, e.attempt, e.forward_began, o.pool, e.worker);

  insert into ledger_entry (at, transaction_id, account_id, amount_nanos, kind)
  values (now(), o.id, o.account_id, -c, 0), (now(), o.id, 0, c, 0);

  update account a set held_nanos = a.held_nanos - o.hold_nanos, available_nanos = a.available_nanos + o.hold_nanos - c,
    spent_nanos = a.spent_nanos + c
  where a.id = o.account_id;

  update api_key k set used_nanos = greatest(k.used_nanos - (o.hold_nanos - c), 0) where k.id = o.api_key_id and o.hold_nanos > c;

  insert into usage_rollup as r (hour, account_id, api_key_id, model_id, task, outcome, requests, charge_nanos, latency_us,
    input_tokens, cached_tokens, output_tokens, reasoning_tokens, characters, images, pixels, steps, audio_ms, video_ms)
  values (date_trunc('hour', now(), 'UTC'), o.account_id, o.api_key_id, o.model_id, o.task, e.outcome, 1, c,
    e.queue_us + e.load_us + e.preprocess_us + e.transfer_us + e.forward_us + e.postprocess_us + e.store_us,
    e.input_tokens, e.cached_tokens, e.output_tokens, e.reasoning_tokens, e.characters, e.images, e.pixels, e.steps, e.audio_ms, e.video_ms)
  on conflict (hour, account_id, api_key_id, model_id, task, outcome) do update set
    requests = r.requests + excluded.requests, charge_nanos = r.charge_nanos + excluded.charge_nanos,
    latency_us = r.latency_us + excluded.latency_us,
    input_tokens = r.input_tokens + excluded.input_tokens, cached_tokens = r.cached_tokens + excluded.cached_tokens,
    output_tokens = r.output_tokens + excluded.output_tokens, reasoning_tokens = r.reasoning_tokens + excluded.reasoning_tokens,
    characters = r.characters + excluded.characters, images = r.images + excluded.images, pixels = r.pixels + excluded.pixels,
    steps = r.steps + excluded.steps, audio_ms = r.audio_ms + excluded.audio_ms, video_ms = r.video_ms + excluded.video_ms;

  if o.keep then
    insert into request_output (id, output, detail, metadata, expires_at)
    select o.id, e.output, coalesce(e.detail, ''), (select p.metadata from request_payload p where p.id = o.id),
      now() + keep_s * interval '1 second';
    delete from request_payload p where p.id = o.id;
  end if;
  charge := c;
  hold := o.hold_nanos;
end $$;
