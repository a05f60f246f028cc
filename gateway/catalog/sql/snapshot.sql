-- The catalog as gateways and settlers hold it, in one snapshot of the database.
-- revision   the revision that was read before; -1 for none.
-- next_at    the instant at which a price that was scheduled then comes into force; null where none was.
-- keep_s     seconds for which a superseded price version is still given: an open request may have pinned it.
-- Answers one row: `revision`, `now`, and the rest as JSON, null where nothing has changed since `revision` and `next_at`.
--   models  [{id, name, spec, withdrawn}] by id
--   pools   [{name, spec}]
--   prices  [{id, model_id, components, valid_from, in_force}]; `valid_from` in Unix microseconds
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
    select coalesce(json_agg(json_build_object(
      'id', v.id, 'model_id', v.model_id, 'components', v.components,
      'valid_from', (extract(epoch from v.valid_from) * 1000000)::bigint,
      'in_force', v.valid_from <= now() and coalesce(v.until > now(), true)) order by v.id), '[]')
    from (
      select id, model_id, components, valid_from,
        lead(valid_from) over (partition by model_id order by valid_from, id) as until
      from price_version
    ) v
    where v.until is null or v.until > now() - make_interval(secs => :keep_s)
  ) end as prices,
  case when changed then (select min(valid_from) from price_version where valid_from > now()) end as next_at
from revision r
cross join lateral (select r.catalog <> :revision or coalesce(now() >= cast(:next_at as timestamptz), false) as changed) c
