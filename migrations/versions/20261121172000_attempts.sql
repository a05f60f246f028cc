-- The steps of workflows, each an attempt of its own with its own cost, which is recorded and charged to nobody.

create table attempt (
  request_id uuid not null,
  number smallint not null,
  name text not null,
  model text not null,
  step_id text not null,
  pool text not null,
  worker text not null,
  attempt smallint not null,
  outcome smallint not null,
  reason smallint not null,
  cost_nanos bigint,
  input_tokens bigint not null,
  cached_tokens bigint not null,
  output_tokens bigint not null,
  reasoning_tokens bigint not null,
  characters bigint not null,
  images bigint not null,
  pixels bigint not null,
  steps bigint not null,
  audio_ms bigint not null,
  video_ms bigint not null,
  queue_us bigint not null,
  load_us bigint not null,
  preprocess_us bigint not null,
  transfer_us bigint not null,
  forward_us bigint not null,
  postprocess_us bigint not null,
  store_us bigint not null,
  primary key (request_id, number)
);
create trigger append_only before update or delete or truncate on attempt for each statement execute function refuse_change();
