#!/bin/sh
# A login that may only read, and one that may write, in the database shop.
set -eu
psql -v ON_ERROR_STOP=1 -v reader="$READER_PASSWORD" -v writer="$WRITER_PASSWORD" -U postgres -d shop <<'SQL'
create role reader login password :'reader';
create role writer login password :'writer';
grant connect on database shop to reader, writer;
grant create, usage on schema public to writer;
grant usage on schema public to reader;
alter default privileges for role writer in schema public grant select on tables to reader;
SQL
