#!/bin/bash
# A login that may only read, and one that may write, in the database shop.
set -eu
sqlcmd=(/opt/mssql-tools18/bin/sqlcmd -C -b -S mssql -U sa -P "$MSSQL_SA_PASSWORD" -v READER="$READER_PASSWORD" WRITER="$WRITER_PASSWORD")
"${sqlcmd[@]}" -i /dev/stdin <<'SQL'
if db_id(N'shop') is null create database shop;
if suser_id(N'reader') is null create login reader with password = N'$(READER)';
if suser_id(N'writer') is null create login writer with password = N'$(WRITER)';
GO
use shop;
if user_id(N'reader') is null create user reader for login reader;
if user_id(N'writer') is null create user writer for login writer;
alter role db_datareader add member reader;
alter role db_datareader add member writer;
alter role db_datawriter add member writer;
alter role db_ddladmin add member writer;
GO
SQL
