-- A settlement that has forgotten its fence: a request that was settled before is charged once more. For the test of the tests.
create function charge_again(ids uuid[]) returns void language sql as $$
  with again as (
    select u.id, u.account_id, u.charge_nanos from usage u where u.id = any (ids)
  ), booked as (
    insert into ledger_entry (at, transaction_id, account_id, amount_nanos, kind)
    select now(), a.id, s.account_id, s.amount_nanos, 0
    from again a cross join lateral (values (a.account_id, -a.charge_nanos), (0, a.charge_nanos)) as s (account_id, amount_nanos)
  )
  update account p set available_nanos = p.available_nanos - s.charge, spent_nanos = p.spent_nanos + s.charge
  from (select account_id, sum(charge_nanos)::bigint as charge from again group by 1) s where p.id = s.account_id
$$;

-- Each of the two ways to settle begins with it, and is otherwise as it was.
create function unfence(name regproc, ids text) returns void language plpgsql as $$
declare
  fenced text := pg_get_functiondef(name);
  unfenced text := regexp_replace(fenced, E'\nbegin\n', format(E'\nbegin\n  perform charge_again(%s);\n', ids));
begin
  if unfenced = fenced then
    raise exception '% was not changed', name;
  end if;
  execute unfenced;
end $$;

select unfence('settle', 'ids'), unfence('settle_one', 'array[request]');
