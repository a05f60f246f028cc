-- Latencies counted in one number (ledger/sql/latency.sql), and coarse sums by the day, with and without keys and models.

alter table usage_rollup add column latencies numeric not null default 0;

-- Hours of a release that neither counted latencies nor knew costs.
update usage_rollup r set latencies = s.latencies, uncosted = s.uncosted
  from (
    select date_trunc('hour', finished_at, 'UTC') as hour, account_id, api_key_id, model_id, task, outcome, route,
      count(*) - count(cost_nanos) as uncosted,
      sum(latency_count(queue_us + load_us + preprocess_us + transfer_us + forward_us + postprocess_us + store_us)) as latencies
    from usage where finished_at < (select max(hour) + interval '1 hour' from usage_rollup where latency_counts = '{}')
    group by 1, 2, 3, 4, 5, 6, 7
  ) s
  where r.latency_counts = '{}' and (r.hour, r.account_id, r.api_key_id, r.model_id, r.task, r.outcome, r.route)
    = (s.hour, s.account_id, s.api_key_id, s.model_id, s.task, s.outcome, s.route);
update usage_rollup set latencies = (
    select sum(n * ('1e' || 12 * (place - 1))::numeric) from unnest(latency_counts) with ordinality as counted (n, place) where n > 0
  ) where latency_counts <> '{}';
alter table usage_rollup drop column latency_counts;

-- Made from `usage_rollup`: the settler fills them for all hours that are over.
drop table rollup_day, rollup_hour_model, rollup_hour_key;
update rollup_state set closed_through = '-infinity';

create table rollup_day (
  day date not null,
  account_id bigint not null,
  api_key_id bigint not null,
  requests bigint not null,
  charge_nanos bigint not null,
  cost_nanos bigint not null,
  uncosted bigint not null,
  gpu_us bigint not null,
  latency_us bigint not null,
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
  model_id int not null,
  task smallint not null,
  outcome smallint not null,
  latencies numeric not null,
  route text not null,
  primary key (day, account_id, api_key_id, model_id, task, outcome, route)
);
create index rollup_day_api_key_id_day_idx on rollup_day (api_key_id, day);
create index rollup_day_model_id_day_idx on rollup_day (model_id, day);

create table rollup_day_model (
  day date not null,
  requests bigint not null,
  charge_nanos bigint not null,
  cost_nanos bigint not null,
  uncosted bigint not null,
  gpu_us bigint not null,
  latency_us bigint not null,
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
  model_id int not null,
  task smallint not null,
  outcome smallint not null,
  latencies numeric not null,
  route text not null,
  primary key (day, model_id, task, outcome, route)
);

create table rollup_day_key (
  day date not null,
  account_id bigint not null,
  api_key_id bigint not null,
  requests bigint not null,
  charge_nanos bigint not null,
  cost_nanos bigint not null,
  uncosted bigint not null,
  gpu_us bigint not null,
  latency_us bigint not null,
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
  outcome smallint not null,
  latencies numeric not null,
  primary key (day, account_id, api_key_id, outcome)
);
create index rollup_day_key_api_key_id_day_idx on rollup_day_key (api_key_id, day);

create table rollup_hour_model (
  hour timestamptz not null,
  requests bigint not null,
  charge_nanos bigint not null,
  cost_nanos bigint not null,
  uncosted bigint not null,
  gpu_us bigint not null,
  latency_us bigint not null,
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
  model_id int not null,
  task smallint not null,
  outcome smallint not null,
  latencies numeric not null,
  route text not null,
  primary key (hour, model_id, task, outcome, route)
);

create table rollup_hour_key (
  hour timestamptz not null,
  account_id bigint not null,
  api_key_id bigint not null,
  requests bigint not null,
  charge_nanos bigint not null,
  cost_nanos bigint not null,
  uncosted bigint not null,
  gpu_us bigint not null,
  latency_us bigint not null,
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
  outcome smallint not null,
  latencies numeric not null,
  primary key (hour, account_id, api_key_id, outcome)
);
create index rollup_hour_key_api_key_id_hour_idx on rollup_hour_key (api_key_id, hour);

drop aggregate if exists sum_counts (int[]);
drop function if exists add_counts, one_count;
