-- I8: the places that are taken of each limit of concurrent requests = the open requests of its owner.
with figures as (
  select case r.owner_kind when 0 then 'account ' else 'key ' end || r.owner_id as name, r.used as left_figure,
    (select count(*) from open_request o where case r.owner_kind when 0 then o.account_id else o.api_key_id end = r.owner_id) as right_figure
  from rate_limit r where r.what = 'concurrent'
)
select coalesce(sum(left_figure), 0) as left_figure, coalesce(sum(right_figure), 0) as right_figure,
  count(*) filter (where left_figure <> right_figure) as broken,
  (array_agg(name order by name) filter (where left_figure <> right_figure))[1:10] as offenders
from figures
