/**
 * Decides whether a statement may be sent to its engine, and is the only place that mints {@link AdmittedQuery}.
 * What an engine's grammar says stands in `Policy/`; what the engine itself enforces stays with its adapter.
 */
import * as Brand from "effect/Brand"
import * as Effect from "effect/Effect"
import type { AdmittedQuery, Engine, Statement } from "./Adapter.js"
import * as SqliteStatement from "./Policy/SqliteStatement.js"
import type { QueryRejected } from "./QueryError.js"

/** How a statement that passed may be used; see `mode` of {@link AdmittedQuery}. */
export type Verdict = Effect.Effect<AdmittedQuery["mode"], QueryRejected>

const mint = Brand.nominal<AdmittedQuery>()

const inspect = (engine: Engine, sql: string): Verdict => {
  switch (engine) {
    case "sqlite":
    case "excel":
    case "csv":
      return SqliteStatement.inspect(sql)
    case "postgres":
      return Effect.flatMap(
        Effect.promise(() => import("./Policy/PostgresGrammar.js")),
        (grammar) => grammar.inspect(sql)
      )
    case "mssql":
      return Effect.flatMap(
        Effect.promise(() => import("./Policy/TransactSql.js")),
        (grammar) => grammar.inspect(sql)
      )
  }
}

/** Admits one read statement of `engine`, or says which rule it breaks. The engine is not touched. */
export const admit = (engine: Engine, statement: Statement): Effect.Effect<AdmittedQuery, QueryRejected> =>
  Effect.map(inspect(engine, statement.sql), (mode) => mint({ ...statement, mode }))
