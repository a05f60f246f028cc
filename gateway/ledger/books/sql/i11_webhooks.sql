-- I11: there are no webhooks yet, so there is nothing to deliver.
select 0 as left_figure, 0 as right_figure, 0 as broken, null::text[] as offenders
