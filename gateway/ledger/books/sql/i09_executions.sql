-- I9: how often finished requests were taken by workers (usage.attempt counts from 1; 0 was never taken), and how many were.
-- A success without an execution contradicts itself.
select coalesce(sum(attempt), 0) as executions, count(*) filter (where attempt > 0) as executed,
  count(*) filter (where outcome = 0 and attempt < 1) as broken,
  (array_agg('req_' || replace(id::text, '-', '')) filter (where outcome = 0 and attempt < 1))[1:10] as offenders,
  (array_agg('req_' || replace(id::text, '-', '') order by attempt desc) filter (where attempt > 1))[1:10] as repeated
from usage
