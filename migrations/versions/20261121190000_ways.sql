-- Requests that may go several ways, and which upstream an attempt was made at.

-- Rows come and go with their requests: vacuumed by a fixed count, and never analysed while empty, as open_request.
create table request_way (
  id uuid not null primary key,
  prices int[] not null,
  plan bytea
) with (
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_insert_threshold = -1,
  autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 2000000000
);

alter table attempt
  add column upstream boolean not null default false,
  add column estimated boolean not null default false,
  add column detail text not null default '';
