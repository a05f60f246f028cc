-- I7: terminal by its deadline, and by a grace of 30 s for what is on its way to its end: a round of the sweeper, a lease, a settlement.
select count(*) as left_figure, 0 as right_figure, count(*) as broken,
  (array_agg('req_' || replace(id::text, '-', '') order by deadline_at))[1:10] as offenders
from open_request where deadline_at < now() - interval '30 s'
