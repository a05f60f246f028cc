-- owners: of the requests and files that a page of blobs belongs to, what is known, and whether their time is over.
--
-- $1  uuid[]  requests
-- $2  uuid[]  files
-- $3  bigint  seconds for which media are kept where neither the output's row nor the account says
--
-- id       uuid
-- attempt  smallint  the attempt that won, null while a request is open, and for files
-- over     boolean   nobody may read its media any more
select u.id, u.attempt,
  coalesce(o.expires_at, u.finished_at + coalesce(a.keep_media_s, $3) * interval '1 second') <= now() as over
from usage u join account a on a.id = u.account_id left join request_output o on o.id = u.id
where u.id = any ($1)
union all
select r.id, null, false from open_request r where r.id = any ($1)
union all
select f.id, null, f.expires_at <= now() from file f where f.id = any ($2)
