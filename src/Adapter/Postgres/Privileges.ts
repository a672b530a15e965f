/** What a login may do beyond reading, asked of the engine in one statement, and a login that may only read. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { SourceReport } from "../../Adapter.js"
import { QueryFailed } from "../../QueryError.js"

/** One row; see {@link privilegesOf} for its columns. Tables of the engine itself are left out. */
export const privilegesQuery = `with me as (select * from pg_catalog.pg_roles where rolname = current_user),
tables as (
  select c.oid, pg_catalog.format('%I.%I', n.nspname, c.relname) as name, c.relowner, n.nspname
  from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where c.relkind in ('r', 'p', 'v', 'm', 'f') and n.nspname not like 'pg\\_%' and n.nspname <> 'information_schema'),
writable as (
  select name from tables t where pg_catalog.has_table_privilege(t.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')
    or pg_catalog.has_any_column_privilege(t.oid, 'INSERT, UPDATE') order by name),
owned as (
  select name from tables t where pg_catalog.pg_has_role(current_user, t.relowner, 'MEMBER') order by name),
schemas as (
  select n.nspname from pg_catalog.pg_namespace n
  where n.nspname not like 'pg\\_%' and n.nspname <> 'information_schema' order by n.nspname),
facts as (
  select me.rolsuper as super, me.rolcreaterole, me.rolcreatedb, me.rolreplication, me.rolbypassrls,
    array(select r.rolname::text from pg_catalog.pg_roles r
      where r.rolname in ('pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program', 'pg_write_all_data',
        'pg_maintain', 'pg_signal_backend', 'pg_checkpoint', 'pg_create_subscription', 'pg_database_owner')
      and pg_catalog.pg_has_role(current_user, r.oid, 'MEMBER') order by 1) as roles,
    pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE') as create_schemas,
    array(select nspname::text from schemas
      where pg_catalog.has_schema_privilege(nspname, 'CREATE')) as create_in,
    (select pg_catalog.count(*) from writable) as writable_count,
    array(select name from writable limit 5) as writable,
    (select pg_catalog.count(*) from owned) as owned_count,
    array(select name from owned limit 5) as owned,
    array(select pg_catalog.quote_ident(nspname) from schemas
      where pg_catalog.has_schema_privilege(nspname, 'USAGE')) as readable,
    pg_catalog.quote_ident(pg_catalog.current_database()) as database
  from me)
select pg_catalog.version(), current_user, pg_catalog.to_jsonb(facts) from facts`

const Names = Schema.Array(Schema.String)

const Facts = Schema.Struct({
  super: Schema.Boolean,
  rolcreaterole: Schema.Boolean,
  rolcreatedb: Schema.Boolean,
  rolreplication: Schema.Boolean,
  rolbypassrls: Schema.Boolean,
  roles: Names,
  create_schemas: Schema.Boolean,
  create_in: Names,
  writable_count: Schema.Number,
  writable: Names,
  owned_count: Schema.Number,
  owned: Names,
  readable: Names,
  database: Schema.String
})
type Facts = typeof Facts.Type

const decode = Schema.decodeUnknown(Schema.parseJson(Facts))

const roleMeans: Record<string, string> = {
  pg_read_server_files: "may read files of the server",
  pg_write_server_files: "may write files of the server",
  pg_execute_server_program: "may run programs on the server",
  pg_write_all_data: "may write all tables",
  pg_maintain: "may vacuum and reindex all tables",
  pg_signal_backend: "may end other sessions",
  pg_checkpoint: "may force checkpoints",
  pg_create_subscription: "may subscribe to other servers",
  pg_database_owner: "owns the database"
}

const some = (count: number, names: ReadonlyArray<string>) =>
  count > names.length ? `${names.join(", ")} and ${count - names.length} more` : names.join(", ")

const excess = (facts: Facts): ReadonlyArray<string> => {
  const flags = [
    facts.super && "is a superuser: may do everything, also read files and run programs on the server",
    facts.rolcreaterole && "CREATEROLE: may make and change roles",
    facts.rolcreatedb && "CREATEDB: may make databases",
    facts.rolreplication && "REPLICATION: may copy the whole server",
    facts.rolbypassrls && "BYPASSRLS: passes over row security"
  ]
  // To a superuser everything below is given anyway.
  const rest = facts.super
    ? []
    : [
        ...facts.roles.map(
          (role) => `member of ${role}: ${roleMeans[role] ?? "a role with more than reading"}`
        ),
        facts.create_schemas && "may make schemas in the database",
        facts.create_in.length > 0 && `may make objects in schema ${facts.create_in.join(", ")}`,
        facts.owned_count > 0 && `owns ${some(facts.owned_count, facts.owned)}`,
        facts.writable_count > 0 && `may write ${some(facts.writable_count, facts.writable)}`
      ]
  return [...flags, ...rest].flatMap((line) => (typeof line === "string" ? [line] : []))
}

const reader = "mcp_query_reader"

const least = ({ database, readable, create_in }: Facts): ReadonlyArray<string> => [
  `CREATE ROLE ${reader} LOGIN PASSWORD '…' NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS`,
  `ALTER ROLE ${reader} SET default_transaction_read_only = on`,
  `GRANT CONNECT ON DATABASE ${database} TO ${reader}`,
  ...readable.flatMap((schema) => [
    `GRANT USAGE ON SCHEMA ${schema} TO ${reader}`,
    `GRANT SELECT ON ALL TABLES IN SCHEMA ${schema} TO ${reader}`,
    `ALTER DEFAULT PRIVILEGES IN SCHEMA ${schema} GRANT SELECT ON TABLES TO ${reader}`
  ]),
  // Until version 14 everybody may make objects in public.
  ...(create_in.includes("public") ? ["REVOKE CREATE ON SCHEMA public FROM PUBLIC"] : [])
]

/** The third column of {@link privilegesQuery}, in words and as statements. */
export const privilegesOf = (
  json: string | null | undefined
): Effect.Effect<Pick<SourceReport, "excessPrivileges" | "leastPrivilege">, QueryFailed> =>
  Effect.mapBoth(decode(json), {
    onFailure: (cause) =>
      new QueryFailed({
        reason: "engine_error",
        message: "What the database says of the login's privileges cannot be read.",
        cause
      }),
    onSuccess: (facts) => {
      const excessPrivileges = excess(facts)
      return { excessPrivileges, leastPrivilege: excessPrivileges.length === 0 ? [] : least(facts) }
    }
  })
