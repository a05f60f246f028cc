-- latency_bucket: which of 32 buckets a latency falls into. Bucket n (from 0) ends at 1 ms x 1.6^n; the last has no end.
-- The same as gateway/reports/latency.py, which the tests compare.
create or replace function latency_bucket(us bigint) returns int
language sql immutable as $$
  select case when us <= 1000 then 0 else least(31, ceil(ln(us / 1000.0::double precision) / ln(1.6::double precision) - 1e-9)::int) end
$$;

-- latency_count: a request counted by its latency. All 32 counts stand in one number, each in 12 decimal digits of its own, bucket 0 in the
-- lowest: so counts are added up by `+` and `sum`, and what is not there takes no room. 32 columns would cost each row 256 bytes, and an
-- array a function call for each row that is added.
create or replace function latency_count(us bigint) returns numeric
language sql immutable as $$
  select (array[
    1e0, 1e12, 1e24, 1e36, 1e48, 1e60, 1e72, 1e84,
    1e96, 1e108, 1e120, 1e132, 1e144, 1e156, 1e168, 1e180,
    1e192, 1e204, 1e216, 1e228, 1e240, 1e252, 1e264, 1e276,
    1e288, 1e300, 1e312, 1e324, 1e336, 1e348, 1e360, 1e372
  ]::numeric[])[latency_bucket(us) + 1]
$$;
