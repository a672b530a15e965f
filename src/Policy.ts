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

const inspect = (engine: Engine, sql: string): Verdict => {
  switch (engine) {
    case "sqlite":
    case "excel":
    case "csv":
      return SqliteStatement.inspect(sql)
    case "postgres":
      return Effect.flatMap(postgresGrammar, (grammar) => grammar.inspect(sql))
    case "mssql":
      return Effect.flatMap(transactSql, (grammar) => grammar.inspect(sql))
  }
}

/** Admits one read statement of `engine`, or says which rule it breaks. The engine is not touched. */
export const admit = (engine: Engine, statement: Statement): Effect.Effect<AdmittedQuery, QueryRejected> =>
  Effect.map(inspect(engine, statement.sql), (mode) => mint({ ...statement, mode }))
