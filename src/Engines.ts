/** Our own engines, each described as an application describes its own. What is heavy is loaded by its first use. */
import * as Effect from "effect/Effect"
import type { Engine } from "./Adapter.js"
import type { Reader } from "./CatalogReader.js"
import type { Dialect } from "./Dialect.js"
import * as SqliteStatement from "./Policy/SqliteStatement.js"

/** A module that is loaded by its first use, and at hand without a turn of the event loop from then on. */
const lazily = <A>(load: () => Promise<A>): Effect.Effect<A> => {
  let loaded: A | undefined
  return Effect.suspend(() =>
    loaded === undefined
      ? Effect.map(Effect.promise(load), (module) => {
          loaded = module
          return module
        })
      : Effect.succeed(loaded)
  )
}

const postgresGrammar = lazily(() => import("./Policy/PostgresGrammar.js"))
const transactSql = lazily(() => import("./Policy/TransactSql.js"))

const readerOf = (load: () => Promise<{ readonly reader: Reader }>): Effect.Effect<Reader> =>
  Effect.map(lazily(load), ({ reader }) => reader)

const workbookReader = readerOf(() => import("./Catalog/Workbook.js"))

/** Workbooks and delimited text are SQLite's tables while they are queried. */
const sqliteSql = {
  language: "SQLite",
  placeholder: "?",
  inspect: SqliteStatement.inspect
}

const engines: Record<Engine, Dialect> = {
  sqlite: {
    name: "sqlite",
    ...sqliteSql,
    catalog: readerOf(() => import("./Catalog/Sqlite.js"))
  },
  excel: { name: "excel", ...sqliteSql, catalog: workbookReader },
  // The note tells of sheets.
  csv: { name: "csv", ...sqliteSql, catalog: Effect.map(workbookReader, ({ note: _, ...reader }) => reader) },
  postgres: {
    name: "postgres",
    language: "PostgreSQL",
    placeholder: "$1",
    inspect: (sql) => Effect.flatMap(postgresGrammar, (grammar) => grammar.inspect(sql)),
    parameterHint: "a cast such as $1::integer says what it is",
    nestedComments: true,
    hasLogins: true,
    catalog: readerOf(() => import("./Catalog/Postgres.js"))
  },
  mssql: {
    name: "mssql",
    language: "T-SQL",
    placeholder: "@p1",
    inspect: (sql) => Effect.flatMap(transactSql, (grammar) => grammar.inspect(sql)),
    paging: "ORDER BY … OFFSET n ROWS FETCH NEXT m ROWS ONLY",
    nestedComments: true,
    hasLogins: true,
    catalog: readerOf(() => import("./Catalog/SqlServer.js"))
  }
}

/** The names of our engines, which no other one may have. */
export const names: ReadonlyArray<string> = Object.keys(engines)

/** What an engine's name stands for; an application's own Dialect says it itself. */
export const dialectOf = (engine: Engine | Dialect): Dialect =>
  typeof engine === "string" ? engines[engine] : engine
