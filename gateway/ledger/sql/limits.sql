-- Limits of accounts (owner_kind 0) and API keys (1): what they may spend in a period, and what they may ask for in a minute or at once.
-- All rows of an account and of its keys change only under the account's lock. Functions in SQL are `stable`, not `immutable`: what they
-- call is no more than that, and Postgres writes only such into the statement that calls them. The rows of an account and a key are found by
-- two index scans, held apart by `offset 0`: an OR of the two would read whole tables.

-- period_start: the begin of the day, week, month (of UTC) or of all time that an instant lies in.
create or replace function period_start(period text, at timestamptz) returns timestamptz
language sql stable as $$
  select case when period = 'total' then '-infinity'::timestamptz else date_trunc(period, at, 'UTC') end
$$;

-- period_end: when the period of an instant ends; null for all time.
create or replace function period_end(period text, at timestamptz) returns timestamptz
language sql stable as $$
  select case when period <> 'total' then (date_trunc(period, at at time zone 'UTC') + ('1 ' || period)::interval) at time zone 'UTC' end
$$;

-- slid: a rate with what it counts at a second: what was counted more than 60 whole seconds before is dropped. `counts` is a ring of 61
-- seconds, of which second s has the place s % 61 + 1, so a window of 60 s never sees more than `used`. A second that has passed changes
-- nothing: the clock may have been set back.
create or replace function slid(r rate_limit, second bigint) returns rate_limit
language plpgsql immutable as $$
declare
  counts bigint[]; -- a variable of its own is changed in place; a field of a row is written anew each time
  gone bigint := 0;
  place int;
begin
  if r.what = 'concurrent' or second <= r.second then
    return r;
  end if;
  if second - r.second > 60 then
    r.used := 0;
    r.counts := array_fill(0::bigint, array[61]);
  else
    counts := r.counts;
    for s in r.second + 1 .. second loop
      place := s % 61 + 1;
      gone := gone + counts[place];
      counts[place] := 0;
    end loop;
    r.counts := counts;
    r.used := r.used - gone;
  end if;
  r.second := second;
  return r;
end $$;

-- counted: a rate with so many more units, requests or tokens, at a second.
create or replace function counted(r rate_limit, units bigint, second bigint) returns rate_limit
language plpgsql immutable as $$
declare
  place int;
begin
  if r.what <> 'concurrent' then
    if second > r.second then
      r := slid(r, second);
    end if;
    place := r.second % 61 + 1;
    r.counts[place] := r.counts[place] + units;
  end if;
  r.used := r.used + units;
  return r;
end $$;

-- rate_fits: whether a rate that was counted is within its limit, and within its burst: the most of this second and the one before.
create or replace function rate_fits(r rate_limit) returns boolean
language sql stable as $$
  select r.used <= r.most and (r.burst is null or r.what = 'concurrent'
    or r.counts[(r.second % 61 + 1)::int] + r.counts[((r.second + 60) % 61 + 1)::int] <= r.burst)
$$;

-- wait_ms: how long until a rate has room for so many units, if nobody else asks; null for never, and for places.
create or replace function wait_ms(r rate_limit, units bigint, at timestamptz) returns bigint
language plpgsql immutable as $$
declare
  second bigint := floor(extract(epoch from at));
begin
  if r.what = 'concurrent' or units > least(r.most, r.burst) then
    return null;
  end if;
  for later in second .. second + 61 loop
    if rate_fits(counted(r, units, later)) then
      return greatest(ceil((later - extract(epoch from at)) * 1000)::bigint, 0);
    end if;
  end loop;
  return 61000;
end $$;

-- reset_ms: how long until a rate counts nothing, if nobody asks; null for places.
create or replace function reset_ms(r rate_limit, at timestamptz) returns bigint
language plpgsql immutable as $$
begin
  if r.what = 'concurrent' then
    return null;
  end if;
  for s in reverse r.second .. r.second - 60 loop
    if r.counts[(s % 61 + 1)::int] > 0 then
      return greatest(ceil((s + 61 - extract(epoch from at)) * 1000)::bigint, 0);
    end if;
  end loop;
  return 0;
end $$;

-- broken_limit: the first limit of an account and a key that a request of `hold` and `tokens` would break at an instant; null for none.
-- Its name is owner:kind:which, such as `key:budget:day` or `account:rate:requests`. What costs nothing breaks no budget.
create or replace function broken_limit(payer bigint, caller bigint, hold bigint, tokens bigint, at timestamptz) returns text
language plpgsql stable as $$
begin
  return (
    select name from (
      select case l.owner_kind when 0 then 'account' else 'key' end || ':budget:' || l.period as name
      from (values (0, payer), (1, caller)) o (kind, id)
      cross join lateral (select * from spending_limit s where s.owner_kind = o.kind and s.owner_id = o.id offset 0) l
      where hold > 0 and hold > l.limit_nanos - case when l.since < period_start(l.period, at) then 0 else l.used_nanos end
      union all
      select case r.owner_kind when 0 then 'account' else 'key' end || ':rate:' || r.what
      from (values (0, payer), (1, caller)) o (kind, id)
      cross join lateral (
        select r.owner_kind, r.what, counted(r, case r.what when 'tokens' then tokens else 1 end, floor(extract(epoch from at))::bigint) as then
        from rate_limit r where r.owner_kind = o.kind and r.owner_id = o.id offset 0
      ) r
      where (r.what <> 'tokens' or tokens > 0) and not rate_fits(r.then)
    ) broken order by name limit 1
  );
end $$;

-- count_limits: counts requests against all limits of their owners, which are all accounts (kind 0) or all keys (1). Answers whether all
-- fitted; where not, undo it.
create or replace function count_limits(kind int, owners hold_sum[], at timestamptz) returns boolean
language plpgsql volatile as $$
declare
  ids bigint[] := array(select o.id from unnest(owners) o);
  now_second bigint := floor(extract(epoch from at));
  money_fits boolean;
  rates_fit boolean;
begin
  with spent as (
    update spending_limit l set
      since = greatest(l.since, period_start(l.period, at)),
      alerted = case when l.since < period_start(l.period, at) then 0 else l.alerted end,
      used_nanos = case when l.since < period_start(l.period, at) then 0 else l.used_nanos end
        + (owners[array_position(ids, l.owner_id)]).hold
    where l.owner_kind = kind and l.owner_id = any (ids) and (owners[array_position(ids, l.owner_id)]).hold > 0
    returning l.used_nanos <= l.limit_nanos as fits
  )
  select coalesce(bool_and(s.fits), true) into money_fits from spent s;

  with asked as (
    update rate_limit r set (used, second, counts) = (
      select c.used, c.second, c.counts
      from counted(r, case r.what when 'tokens' then (owners[array_position(ids, r.owner_id)]).tokens
        else (owners[array_position(ids, r.owner_id)]).requests end, now_second) c
    )
    where r.owner_kind = kind and r.owner_id = any (ids)
      and (r.what <> 'tokens' or (owners[array_position(ids, r.owner_id)]).tokens > 0)
    returning rate_fits(r) as fits
  )
  select coalesce(bool_and(a.fits), true) into rates_fit from asked a;
  return money_fits and rates_fit;
end $$;

-- given_back: a rate without what settled requests of its owner did not use: their places, or tokens at the second of their admission.
create or replace function given_back(r rate_limit, unused unused_share[]) returns rate_limit
language plpgsql immutable as $$
declare
  u unused_share;
  admitted bigint;
  place int;
  back bigint;
begin
  foreach u in array unused loop
    continue when r.owner_id <> case r.owner_kind when 0 then u.account_id else u.api_key_id end;
    if r.what = 'concurrent' then
      r.used := greatest(r.used - 1, 0);
    else
      admitted := floor(extract(epoch from u.admitted_at));
      if admitted between r.second - 60 and r.second then
        place := admitted % 61 + 1;
        back := least(u.tokens, r.counts[place]);
        r.counts[place] := r.counts[place] - back;
        r.used := r.used - back;
      end if;
    end if;
  end loop;
  return r;
end $$;

-- return_limits: gives back what settled requests did not use of the limits of these owners, which are all accounts (kind 0) or all keys
-- (1): money within the period that they were admitted in, tokens, places.
create or replace function return_limits(kind int, ids bigint[], unused unused_share[]) returns void
language plpgsql volatile as $$
begin
  update spending_limit l set used_nanos = l.used_nanos - (
      select coalesce(sum(u.back), 0) from unnest(unused) u
      where l.owner_id = case kind when 0 then u.account_id else u.api_key_id end and u.admitted_at >= l.since
    )
    where l.owner_kind = kind and l.owner_id = any (ids);
  update rate_limit r set (used, counts) = (select g.used, g.counts from given_back(r, unused) g)
    where r.owner_kind = kind and r.owner_id = any (ids) and r.what <> 'requests';
end $$;

-- limits_of: the limits of an account and a key as they stand, for headers and refusals: null where there are none. Of each the name,
-- `most`, `left`; `resets_ms`, until all of it is there again, null for a budget in all and for places; and `wait_ms`, until a request of
-- `hold` and `tokens` would fit, null where it would never; 0 where `hold` is null: nobody asks.
create or replace function limits_of(payer bigint, caller bigint, hold bigint, tokens bigint, at timestamptz) returns jsonb
language plpgsql stable as $$
begin
  return (
    select jsonb_agg(jsonb_build_object('name', name, 'most', most, 'left', greatest("left", 0), 'resets_ms', resets_ms, 'wait_ms', wait_ms)
      order by name) from (
      select case l.owner_kind when 0 then 'account' else 'key' end || ':budget:' || l.period as name, l.limit_nanos as most,
        l.limit_nanos - u.used as "left", e.ends_ms as resets_ms,
        case when coalesce(hold, 0) = 0 or hold <= l.limit_nanos - u.used then 0 when hold <= l.limit_nanos then e.ends_ms end as wait_ms
      from (values (0, payer), (1, caller)) o (kind, id)
      cross join lateral (select * from spending_limit s where s.owner_kind = o.kind and s.owner_id = o.id offset 0) l
      cross join lateral (select case when l.since < period_start(l.period, at) then 0 else l.used_nanos end as used) u
      cross join lateral (select ceil(extract(epoch from period_end(l.period, at) - at) * 1000)::bigint as ends_ms) e
      union all
      select case r.owner_kind when 0 then 'account' else 'key' end || ':rate:' || r.what, r.most, r.most - (r.now).used,
        reset_ms(r.now, at), case when u.units = 0 then 0 else wait_ms(r.now, u.units, at) end
      from (values (0, payer), (1, caller)) o (kind, id)
      cross join lateral (
        select r.owner_kind, r.what, r.most, slid(r, floor(extract(epoch from at))::bigint) as now
        from rate_limit r where r.owner_kind = o.kind and r.owner_id = o.id offset 0
      ) r
      cross join lateral (select coalesce(case r.what when 'tokens' then tokens else (hold is not null)::int end, 0) as units) u
    ) limits
  );
end $$;

-- limit_reached: the highest of 50, 80 and 100 per cent of a budget that is used; 0 for none of them. Of a budget of nothing, all is.
create or replace function limit_reached(used bigint, "limit" bigint) returns smallint
language sql stable as $$
  select case when used::numeric >= "limit" then 100 when used::numeric * 100 >= "limit"::numeric * 80 then 80
    when used::numeric * 100 >= "limit"::numeric * 50 then 50 else 0 end::smallint
$$;
