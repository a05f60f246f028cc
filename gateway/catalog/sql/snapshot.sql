-- The catalog as gateways and settlers hold it, in one snapshot of the database.
-- revision   the revision that was read before; -1 for none.
-- next_at    the instant at which a price that was scheduled then comes into force; null where none was.
-- keep_s     seconds for which a superseded price version is still given: an open request may have pinned it.
-- Answers one row: `revision`, `now`, and the rest as JSON, null where nothing has changed since `revision` and `next_at`.
--   models  [{id, name, spec, withdrawn}] by id
--   pools   [{name, spec}]
--   upstreams  [{name, spec}]
--   prices  [{id, model_id, components, outcome, minimum_nanos, price_list_id, valid_from, in_force}]; `valid_from` in Unix microseconds;
--           `outcome` is that of the model where an older release wrote the version. One that was cancelled is never in force.
select
  r.catalog as revision,
  now() as now,
  case when changed then (
    select coalesce(json_agg(json_build_object(
      'id', m.id, 'name', m.name, 'spec', m.spec, 'withdrawn', m.withdrawn_at is not null) order by m.id), '[]')
    from model m
  ) end as models,
  case when changed then (
    select coalesce(json_agg(json_build_object('name', p.name, 'spec', p.spec) order by p.name), '[]') from pool p
  ) end as pools,
  case when changed then (
    select coalesce(json_agg(json_build_object('name', u.name, 'spec', u.spec) order by u.name), '[]') from upstream u
  ) end as upstreams,
  case when changed then (
    select coalesce(json_agg(json_build_object(
      'id', v.id, 'model_id', v.model_id, 'components', v.components, 'outcome', coalesce(v.outcome, m.spec -> 'outcome'),
      'minimum_nanos', v.minimum_nanos, 'price_list_id', v.price_list_id,
      'valid_from', (extract(epoch from v.valid_from) * 1000000)::bigint,
      'in_force', not v.cancelled and v.valid_from <= now() and coalesce(v.until > now(), true)) order by v.id), '[]')
    from (
      select p.id, p.model_id, p.components, p.outcome, p.minimum_nanos, p.price_list_id, p.valid_from, c.cancelled_at is not null as cancelled,
        coalesce(c.cancelled_at, lead(p.valid_from) over (
          partition by p.model_id, p.price_list_id, c.cancelled_at is not null order by p.valid_from, p.id)) as until
      from price_version p left join price_cancellation c on c.price_version_id = p.id
    ) v join model m on m.id = v.model_id
    where v.until is null or v.until > now() - make_interval(secs => :keep_s)
  ) end as prices,
  case when changed then (
    select min(valid_from) from price_version p
    where valid_from > now() and not exists (select from price_cancellation c where c.price_version_id = p.id)
  ) end as next_at
from revision r
cross join lateral (select r.catalog <> :revision or coalesce(now() >= cast(:next_at as timestamptz), false) as changed) c
