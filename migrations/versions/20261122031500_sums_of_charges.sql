-- What statements say, summed by day (UTC). The settler makes the sums of hours that are over, with the others anew.
create table rollup_day_charge (
  day date not null,
  account_id bigint not null,
  api_key_id bigint not null,
  requests bigint not null,
  free bigint not null,
  rated bigint not null,
  charge_nanos bigint not null,
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
  price_version_id int not null,
  terms jsonb
);
create unique index rollup_day_charge_idx on rollup_day_charge (account_id, day, api_key_id, model_id, price_version_id, terms) nulls not distinct;
update rollup_state set closed_through = '-infinity';

-- Hours are read by their end soon after it, and not only once a vacuum came by.
alter index usage_finished_at_idx set (autosummarize = on);
