/** What the login is and may do, and the statements that make one which may only read. */
import * as Effect from "effect/Effect"
import type { SourceReport } from "../../Adapter.js"
import type { AdapterFailure } from "../../QueryError.js"

/** Runs a query of ours and gives its rows. */
export type Ask = (sql: string) => Effect.Effect<ReadonlyArray<ReadonlyArray<unknown>>, AdapterFailure>

/** Rights that let a login connect, read and look at definitions. */
const readingRights: ReadonlySet<string> = new Set([
  "CONNECT",
  "CONNECT ANY DATABASE",
  "CONNECT SQL",
  "SELECT",
  "SELECT ALL USER SECURABLES",
  "SHOWPLAN",
  "VIEW ANY COLUMN ENCRYPTION KEY DEFINITION",
  "VIEW ANY COLUMN MASTER KEY DEFINITION",
  "VIEW ANY DATABASE",
  "VIEW ANY DEFINITION",
  "VIEW ANY PERFORMANCE DEFINITION",
  "VIEW ANY SECURITY DEFINITION",
  "VIEW CHANGE TRACKING",
  "VIEW DATABASE PERFORMANCE STATE",
  "VIEW DATABASE SECURITY STATE",
  "VIEW DATABASE STATE",
  "VIEW DEFINITION",
  "VIEW PERFORMANCE DEFINITION",
  "VIEW SECURITY DEFINITION",
  "VIEW SERVER PERFORMANCE STATE",
  "VIEW SERVER SECURITY STATE",
  "VIEW SERVER STATE"
])

const roles = {
  server: [
    "sysadmin",
    "serveradmin",
    "securityadmin",
    "processadmin",
    "setupadmin",
    "bulkadmin",
    "diskadmin",
    "dbcreator"
  ],
  database: [
    "db_owner",
    "db_securityadmin",
    "db_accessadmin",
    "db_backupoperator",
    "db_ddladmin",
    "db_datawriter"
  ]
}

const memberships = (names: ReadonlyArray<string>, test: string) =>
  names.map((name) => `SELECT N'${name}', ${test}(N'${name}')`).join(" UNION ALL ")

const rights = (scope: string) => `SELECT permission_name FROM fn_my_permissions(NULL, '${scope}')`

const schemas =
  "SELECT DISTINCT SCHEMA_NAME(schema_id) FROM sys.objects WHERE type IN ('U', 'V') AND is_ms_shipped = 0"

const writable = ["INSERT", "UPDATE", "DELETE", "ALTER"]
  .map(
    (right) =>
      `SELECT N'${right}', COUNT(*) FROM sys.objects WHERE type IN ('U', 'V') AND is_ms_shipped = 0 ` +
      `AND HAS_PERMS_BY_NAME(QUOTENAME(SCHEMA_NAME(schema_id)) + N'.' + QUOTENAME(name), 'OBJECT', '${right}') = 1`
  )
  .join(" UNION ALL ")

const bracketed = (name: string) => `[${name.replaceAll("]", "]]")}]`

const statements = (database: string, readable: ReadonlyArray<string>): ReadonlyArray<string> => [
  "CREATE LOGIN [mcp_query_reader] WITH PASSWORD = N'<a new password>'",
  `USE ${bracketed(database)}`,
  "CREATE USER [mcp_query_reader] FOR LOGIN [mcp_query_reader]",
  ...(readable.length === 0 ? ["dbo"] : readable).map(
    (schema) => `GRANT SELECT ON SCHEMA::${bracketed(schema)} TO [mcp_query_reader]`
  ),
  "GRANT VIEW DEFINITION TO [mcp_query_reader]",
  "GRANT SHOWPLAN TO [mcp_query_reader]"
]

export const report = (ask: Ask, tls: boolean): Effect.Effect<SourceReport, AdapterFailure> => {
  // An engine of this dialect may lack a catalog function; what it cannot say is left out.
  const askOptional = (sql: string) =>
    ask(sql).pipe(
      Effect.catchTag("QueryFailed", () => Effect.succeed<ReadonlyArray<ReadonlyArray<unknown>>>([]))
    )
  return Effect.gen(function* () {
    const [[version, login, database] = []] = yield* ask("SELECT @@VERSION, SUSER_SNAME(), DB_NAME()")
    const memberOf = [
      ...(yield* askOptional(memberships(roles.server, "IS_SRVROLEMEMBER"))),
      ...(yield* askOptional(memberships(roles.database, "IS_MEMBER")))
    ]
    const granted = [
      ...(yield* askOptional(rights("SERVER"))).map(([right]) => ({ right, scope: "server" })),
      ...(yield* askOptional(rights("DATABASE"))).map(([right]) => ({ right, scope: "database" }))
    ]
    const objects = yield* askOptional(writable)
    const excessPrivileges = [
      ...memberOf.filter(([, member]) => member === 1).map(([role]) => `member of ${role}`),
      ...granted
        .filter(({ right }) => !readingRights.has(String(right)))
        .map(({ right, scope }) => `${right} on the ${scope}`),
      ...objects
        .filter(([, count]) => Number(count) > 0)
        .map(([right, count]) => `${right} on ${count} tables or views`)
    ]
    const readable = excessPrivileges.length === 0 ? [] : yield* askOptional(schemas)
    return {
      version: String(version).split("\n")[0]?.trim() ?? "",
      tls,
      login: login === null || login === undefined ? null : String(login),
      excessPrivileges,
      leastPrivilege:
        excessPrivileges.length === 0
          ? []
          : statements(
              String(database),
              readable.flatMap(([schema]) => (typeof schema === "string" ? [schema] : [])).sort()
            )
    }
  })
}
