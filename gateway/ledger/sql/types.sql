-- The rows that admission and settlement take, in arrays. Gateways and settlers send the fields in this order: a new field
-- means a new type and a new function beside the old ones, which the running release still calls.

-- opening: a request that asks to be admitted.
create type opening as (
  id uuid, account_id bigint, api_key_id bigint, hold bigint, deadline_s int, model_id int, price_version_id int, task smallint,
  keep boolean, pool text
);

-- hold_sum: what the openings of one account, or of one API key, ask for together. `account_id` is the account of the key.
create type hold_sum as (id bigint, account_id bigint, hold bigint);

-- keyed_call: an opening that came with an idempotency key; `n` is its position, from 1.
create type keyed_call as (n int, id uuid, account_id bigint, api_key_id bigint, key text, body_hash bytea);

-- kept_call: an opening whose payload and metadata are kept.
create type kept_call as (id uuid, payload bytea, metadata jsonb);

-- ending: how a request ended. `output` and `detail` are kept where the request was admitted with `keep`; else leave them null.
create type ending as (
  charge bigint, outcome smallint, reason smallint, attempt smallint, forward_began boolean, worker text,
  input_tokens bigint, cached_tokens bigint, output_tokens bigint, reasoning_tokens bigint, characters bigint, images bigint,
  pixels bigint, steps bigint, audio_ms bigint, video_ms bigint,
  queue_us bigint, load_us bigint, preprocess_us bigint, transfer_us bigint, forward_us bigint, postprocess_us bigint, store_us bigint,
  output bytea, detail text
);
