-- The rows that admission and settlement take, in arrays. Gateways and settlers send the fields in this order: once a release
-- runs, a new field means a new type and a new function beside the old ones, which that release still calls.

-- opening: a request that asks to be admitted. `tokens` are the most that it can come to; `terms` is null or what its charge depends on
-- beside units and price version.
create type opening as (
  id uuid, account_id bigint, api_key_id bigint, hold bigint, deadline_s int, model_id int, price_version_id int, task smallint,
  keep boolean, pool text, tokens bigint, terms jsonb
);

-- hold_sum: what the openings of one account, or of one API key, ask for together. `account_id` is the account of the key.
create type hold_sum as (id bigint, account_id bigint, hold bigint, requests bigint, tokens bigint);

-- keyed_call: an opening that came with an idempotency key; `n` is its position, from 1.
create type keyed_call as (n int, id uuid, account_id bigint, api_key_id bigint, key text, body_hash bytea);

-- kept_request: an opening whose payload and metadata are kept. `webhook` is where its caller wants to be told, of which events
-- (started, progress, completed); null where nowhere.
create type kept_request as (id uuid, payload bytea, metadata jsonb, webhook text, webhook_events text[]);

-- ending: how a request ended. `output` and `detail` are kept where the request was admitted with `keep`; else leave them null.
-- `cost` is null where nobody knows what it cost the operator.
create type ending as (
  charge bigint, outcome smallint, reason smallint, attempt smallint, forward_began boolean, worker text,
  input_tokens bigint, cached_tokens bigint, output_tokens bigint, reasoning_tokens bigint, characters bigint, images bigint,
  pixels bigint, steps bigint, audio_ms bigint, video_ms bigint,
  queue_us bigint, load_us bigint, preprocess_us bigint, transfer_us bigint, forward_us bigint, postprocess_us bigint, store_us bigint,
  output bytea, detail text, cost bigint, gpu_us bigint, route text
);

-- way_end: an ending in another pool, or of another model, than the request was admitted to; `n` is its position, from 1.
create type way_end as (n int, model_id int, pool text);

-- attempt_row: one attempt inside a request; `n` is the position of its request, from 1, `number` that of the attempt in it.
create type attempt_row as (
  n int, number smallint, name text, model text, step_id text, pool text, worker text, attempt smallint, outcome smallint, reason smallint,
  cost_nanos bigint,
  input_tokens bigint, cached_tokens bigint, output_tokens bigint, reasoning_tokens bigint, characters bigint, images bigint,
  pixels bigint, steps bigint, audio_ms bigint, video_ms bigint,
  queue_us bigint, load_us bigint, preprocess_us bigint, transfer_us bigint, forward_us bigint, postprocess_us bigint, store_us bigint,
  upstream boolean, estimated boolean, detail text, gpu_us bigint
);

-- unused_share: what a settled request gives back to its limits.
create type unused_share as (account_id bigint, api_key_id bigint, admitted_at timestamptz, back bigint, tokens bigint);
