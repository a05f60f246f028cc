-- Usage of the past, as if it had been served: rows, ledger, refunds, balances and hourly sums that agree with each other, so that
-- `faregate books verify` finds nothing. Settings: bench.rows, bench.keys, bench.models, bench.days, bench.label (all set by usage_rows.py).
--
-- A key pays with a weight of its own and calls a few of the models; 4% of the requests do not succeed; some accounts have a discount, some
-- pictures a trait, and one charge in 2,000 is refunded. Prices are whole nanos per unit, so only discounts are rounded.

create temporary table made_account as
  select n, 0::bigint as id, (array['Northwind', 'Harbor', 'Juniper', 'Atlas', 'Lumen', 'Kestrel', 'Marlow', 'Tern'])[1 + n % 8] || ' '
    || (array['Labs', 'Studio', 'Research', 'Media', 'Works'])[1 + n % 5] || case when n >= 40 then ' ' || n else '' end as name,
    case n % 10 when 3 then 100000 when 7 then 12345 else 0 end as discount_ppm
  from generate_series(0, greatest(current_setting('bench.keys')::int / 4, 1) - 1) n;

with made as (
  insert into account (name, kind, discount_ppm)
    select name || current_setting('bench.label'), 'prepaid', discount_ppm from made_account order by n returning id, name
)
update made_account a set id = made.id from made where made.name = a.name || current_setting('bench.label');

create temporary table made_key as
  select g.n, 0::bigint as id, a.id as account_id, sha256(('bench key ' || g.n || current_setting('bench.label') || clock_timestamp())::bytea) as hash,
    a.discount_ppm, case when a.discount_ppm > 0 then jsonb_build_object('discount_ppm', a.discount_ppm) end as terms,
    jsonb_build_object('traits', '{"quality": "hd"}'::jsonb) || case when a.discount_ppm > 0 then jsonb_build_object('discount_ppm', a.discount_ppm) else '{}' end as hd_terms
  from generate_series(0, current_setting('bench.keys')::int - 1) g (n) join made_account a on a.n = g.n / 4 % (select count(*) from made_account);

with made as (
  insert into api_key (account_id, name, hash, prefix)
  select account_id, (array['production', 'staging', 'batch', 'notebook'])[1 + n % 4], hash, 'fg_live_' || substr(encode(hash, 'hex'), 1, 4)
  from made_key order by n returning id, hash
)
update made_key k set id = made.id from made where made.hash = k.hash;

-- Models by number: those that are there and have a price of tokens or images, the fake ones first; then copies of them under names of
-- their own, by way of a fake one's pool, so that pages list them all.
create temporary table made_model as
  select row_number() over (order by m.name not like 'fake-%', m.id)::int - 1 as n, m.id as model_id, v.id as version_id, m.spec -> 'tasks' ->> 0 as task,
    coalesce(m.spec -> 'routes' -> 0 ->> 'upstream', '') as upstream, m.spec -> 'routes' -> 0 ->> 'pool' as pool,
    coalesce((select (c ->> 'picos')::bigint from jsonb_array_elements(v.components) c where c ->> 'unit' = 'input_token'), 0) as input_picos,
    coalesce((select (c ->> 'picos')::bigint from jsonb_array_elements(v.components) c where c ->> 'unit' = 'output_token'), 0) as output_picos,
    coalesce((select (c ->> 'picos')::bigint from jsonb_array_elements(v.components) c where c ->> 'unit' = 'image'), 0) as image_picos
  from model m join lateral (
    select id, components from price_version where model_id = m.id and valid_from <= now() and price_list_id is null order by valid_from desc, id desc limit 1
  ) v on true
  where m.withdrawn_at is null and jsonb_array_length(v.components) > 0
    and (select bool_and(c ->> 'unit' in ('input_token', 'output_token', 'image') and not c ? 'when') from jsonb_array_elements(v.components) c)
  limit current_setting('bench.models')::int;

do $$
declare
  known int := (select count(*) from made_model);
  routes jsonb := (select spec -> 'routes' from model where name like 'fake-%' and withdrawn_at is null order by id limit 1);
  copied int;
  version int;
begin
  for i in known .. current_setting('bench.models')::int - 1 loop
    insert into model (name, spec)
      select m.name || '-' || i || current_setting('bench.label'), m.spec || '{"aliases": []}' || jsonb_build_object('routes', coalesce(routes, m.spec -> 'routes'))
      from model m join made_model x on x.model_id = m.id where x.n = i % known returning id into copied;
    insert into price_version (model_id, components, valid_from, source, outcome)
      select copied, v.components, v.valid_from, 'bench', v.outcome from price_version v join made_model x on x.version_id = v.id where x.n = i % known
      returning id into version;
    insert into made_model select i, copied, version, task, upstream, pool, input_picos, output_picos, image_picos from made_model where n = i % known;
  end loop;
  update revision set catalog = catalog + 1;
end $$;
analyze made_key, made_model;

-- Into tables that are empty: without indexes, which are made at the end, and without a log, since the tables are new to this transaction.
create temporary table made_index (on_table regclass, name text, definition text, is_key boolean);
do $$
declare
  each record;
begin
  if exists (select from usage) or not current_setting('is_superuser')::boolean then
    return;
  end if;
  insert into made_index
    select i.indrelid, c.relname, coalesce(pg_get_constraintdef(k.oid), pg_get_indexdef(i.indexrelid)), k.oid is not null
    from pg_index i join pg_class c on c.oid = i.indexrelid left join pg_constraint k on k.conindid = i.indexrelid
    where i.indrelid in ('usage'::regclass, 'usage_rollup'::regclass);
  set local session_replication_role = replica;  -- they are append-only
  truncate usage, usage_rollup;
  set local session_replication_role = origin;
  for each in select * from made_index loop
    execute case when each.is_key then format('alter table %s drop constraint %I', each.on_table, each.name) else format('drop index %I', each.name) end;
  end loop;
end $$;

insert into usage (id, account_id, api_key_id, created_at, finished_at, hold_nanos, charge_nanos,
  input_tokens, cached_tokens, output_tokens, reasoning_tokens, characters, images, pixels, steps, audio_ms, video_ms,
  queue_us, load_us, preprocess_us, transfer_us, forward_us, postprocess_us, store_us,
  model_id, price_version_id, task, outcome, reason, attempt, forward_began, pool, worker, cost_nanos, gpu_us, route, terms)
select
  (lpad(to_hex((extract(epoch from created_at) * 1000)::bigint), 12, '0') || '7' || substr(h, 1, 3) || '8' || substr(h, 4, 15))::uuid,
  account_id, key_id, created_at, created_at + (queue_us + forward_us + 900) * interval '1 microsecond',
  charge + (charge >> 1) + 1000, charge, input_tokens, 0, output_tokens, 0, 0, images, images * 1048576, images * 20, 0, 0,
  queue_us, 0, 500, 0, forward_us, 400, 0, model_id, version_id, task, outcome,
  (array[0, 1, 7, 8])[outcome + 1], 1 + (r3 < 0.01)::int, outcome in (0, 2), pool, pool || '-' || (i % 3), case when r3 < 0.9 then (charge * (0.4 + r3 / 2))::bigint end, forward_us / (1 + i % 4),
  case when upstream <> '' then upstream else pool end, case when image_picos > 0 and r3 < 0.3 then hd_terms else terms end
from (
  -- Half a nano goes to the even one.
  select *, case when discount_ppm = 0 then full_charge else full_charge * (1000000 - discount_ppm) / 1000000
    + (case when full_charge * (1000000 - discount_ppm) % 1000000 + full_charge * (1000000 - discount_ppm) / 1000000 % 2 > 500000 then 1 else 0 end) end as charge
  from (
    select *, (input_tokens * input_picos + output_tokens * output_picos + images * image_picos) / 1000 as full_charge
    from (
      select i, h, r3, k.account_id, k.id as key_id, k.discount_ppm, k.terms, k.hd_terms, created_at, m.model_id, m.version_id, m.pool, m.upstream,
        m.input_picos, m.output_picos, m.image_picos, array_position(array[TASKS], m.task)::smallint - 1 as task, outcome,
        case when m.image_picos = 0 and outcome in (0, 2) then 20 + (1500 * r1 * r1)::bigint else 0 end as input_tokens,
        case when m.output_picos > 0 and outcome in (0, 2) then 1 + (600 * r2 * r2)::bigint else 0 end as output_tokens,
        case when m.image_picos > 0 and outcome = 0 then 1 + (r1 * 2)::bigint else 0 end as images,
        (500 + 40000 * r2 ^ 6)::bigint as queue_us, (case when m.image_picos > 0 then 2500000 else 180000 end * (0.3 + 3 * r1 ^ 3))::bigint as forward_us
      from (
        select i, md5(i || current_setting('bench.label')) as h, random() as r1, random() as r2, random() as r3,
          now() - interval '15 minutes' - current_setting('bench.days')::int * interval '1 day' * (1 - i::float8 / current_setting('bench.rows')::bigint) as created_at,
          floor(current_setting('bench.keys')::int * random() ^ 2.2)::int as key_n, floor(5 * random() ^ 2)::int as pick,
          case when o < 0.96 then 0 when o < 0.98 then 1 when o < 0.995 then 2 else 3 end::smallint as outcome
        from (select i, random() as o from generate_series(1, current_setting('bench.rows')::bigint) i) drawn
      ) drawn
      join made_key k on k.n = drawn.key_n
      join made_model m on m.n = (drawn.key_n * 7 + drawn.pick) % current_setting('bench.models')::int
    ) counted
  ) priced
) discounted;

insert into ledger_entry (at, transaction_id, account_id, amount_nanos, kind)
  select finished_at, u.id, s.account_id, s.amount, 0
  from usage u cross join lateral (values (u.account_id, -u.charge_nanos), (0, u.charge_nanos)) s (account_id, amount)
  where u.api_key_id in (select id from made_key);

-- Day by day: the sums of ten million rows at once would not fit into memory.
do $$
declare
  each record;
  since timestamptz;
begin
  for each in select * from made_index where on_table = 'usage'::regclass order by not is_key loop
    execute case when each.is_key then format('alter table usage add constraint %I %s', each.name, each.definition) else each.definition end;
  end loop;
  analyze usage;
  for since in select generate_series(date_trunc('day', (select min(finished_at) from usage), 'UTC'), now(), '1 day') loop
    insert into usage_rollup (hour, account_id, api_key_id, model_id, task, outcome, route, requests, charge_nanos, latency_us,
      input_tokens, cached_tokens, output_tokens, reasoning_tokens, characters, images, pixels, steps, audio_ms, video_ms, cost_nanos, uncosted, gpu_us,
      latencies)
    select date_trunc('hour', finished_at, 'UTC'), account_id, api_key_id, model_id, task, outcome, route, count(*), sum(charge_nanos), sum(latency),
      sum(input_tokens), sum(cached_tokens), sum(output_tokens), sum(reasoning_tokens), sum(characters), sum(images), sum(pixels), sum(steps),
      sum(audio_ms), sum(video_ms), coalesce(sum(cost_nanos), 0), count(*) - count(cost_nanos), sum(gpu_us), sum(latency_count(latency))
    from (select *, queue_us + load_us + preprocess_us + transfer_us + forward_us + postprocess_us + store_us as latency from usage
          where finished_at >= since and finished_at < since + interval '1 day' and api_key_id in (select id from made_key)) u
    group by 1, 2, 3, 4, 5, 6, 7 order by 1;  -- one hour after the other, as they would have been written
  end loop;
  for each in select * from made_index where on_table = 'usage_rollup'::regclass order by not is_key loop
    execute case when each.is_key then format('alter table usage_rollup add constraint %I %s', each.name, each.definition) else each.definition end;
  end loop;
end $$;

-- One charge in 2,000 is given back, in part or whole.
with given as (
  insert into refund (id, at, request_id, account_id, api_key_id, amount_nanos, actor, reason)
    select gen_random_uuid(), least(finished_at + interval '1 hour', now()), id, account_id, api_key_id,
      case when attempt = 1 then (charge_nanos + 1) / 2 else charge_nanos end, 'bench', 'came out wrong'
    from usage where charge_nanos > 0 and gpu_us % 2000 = 7 and api_key_id in (select id from made_key)
    returning *
)
insert into ledger_entry (at, transaction_id, account_id, amount_nanos, kind, reason)
  select g.at, g.id, s.account_id, s.amount, 2, g.reason from given g
  cross join lateral (values (g.account_id, g.amount_nanos), (0, -g.amount_nanos)) s (account_id, amount);

create temporary table spent as
  select account_id, api_key_id, sum(nanos)::bigint as nanos, max(hour) as hour from (
    select account_id, api_key_id, sum(charge_nanos) as nanos, max(hour) as hour from usage_rollup group by 1, 2
    union all
    select account_id, api_key_id, -sum(amount_nanos), null from refund group by 1, 2
  ) moved where api_key_id in (select id from made_key) group by 1, 2;
with booked as (select a.id, s.spent, s.spent / 4 * (2 + a.n % 9) + 20000000000 as spare, gen_random_uuid() as transaction_id
  from made_account a cross join lateral (select coalesce(sum(nanos), 0)::bigint as spent from spent where account_id = a.id) s
), moved as (
  update account a set topped_up_nanos = b.spent + b.spare, spent_nanos = b.spent, available_nanos = b.spare from booked b where a.id = b.id
)
insert into ledger_entry (at, transaction_id, account_id, amount_nanos, kind, reason)
  select now() - current_setting('bench.days')::int * interval '1 day', b.transaction_id, s.account_id, s.amount, 1, 'bank transfer'
  from booked b cross join lateral (values (b.id, b.spent + b.spare), (-1, -b.spent - b.spare)) s (account_id, amount);
update api_key k set used_nanos = s.nanos, last_used_at = least(s.hour + interval '59 minutes', now()) from spent s where k.id = s.api_key_id;

-- The coarser sums are made anew of all hours by the settler.
delete from rollup_day;
delete from rollup_day_model;
delete from rollup_day_key;
delete from rollup_hour_model;
delete from rollup_hour_key;
update rollup_state set closed_through = '-infinity';

drop table made_account, made_key, made_model, made_index, spent;
analyze usage, usage_rollup, ledger_entry, account, api_key, refund;
