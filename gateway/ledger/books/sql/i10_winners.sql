-- I10, for outputs.py: the attempt that won of each finished request among $1 (uuid[]); open requests answer null.
select id, attempt from usage where id = any ($1::uuid[])
union all
select id, null from open_request where id = any ($1::uuid[])
