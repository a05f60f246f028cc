-- Whether a transaction is open that began before $1, and may still add to an hour that ended then: settlements add to
-- the hour in which they began (`now()`). Sessions of other database roles show nothing here, so all processes of
-- Faregate use one role.
select exists (
  select from pg_stat_activity
  where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid() and xact_start < $1
)
