/**
 * Decides whether a statement may be sent to its engine, and is the only place that mints {@link AdmittedQuery}.
 * What an engine's grammar says stands in `Policy/`, or in an application's Dialect; what the engine itself enforces stays
 * with its adapter.
 */
import * as Brand from "effect/Brand"
import * as Effect from "effect/Effect"
import type { AdmittedQuery, Engine, Statement } from "./Adapter.js"
import type { Dialect, Verdict } from "./Dialect.js"
import { dialectOf } from "./Engines.js"
import { QueryRejected } from "./QueryError.js"

const mint = Brand.nominal<AdmittedQuery>()

/** Characters of a statement at most. */
export const longestStatement = 100_000

/** How long an application's judgement may take, so that every call is answered in time. */
const patience = "1 second"

const blank = new QueryRejected({ reason: "statement_type", message: "There is no statement." })

const tooLong = new QueryRejected({
  reason: "unverifiable",
  message: `A statement has ${longestStatement} characters at most.`
})

const severalStatements = new QueryRejected({
  reason: "multiple_statements",
  message: "Only one statement may be sent in a call, and a semicolon may only end it.",
  hint: "Send each statement in a call of its own, and a text with a semicolon in params."
})

const undecided = new QueryRejected({
  reason: "unverifiable",
  message: "The statement could not be checked in time and was not sent."
})

/** Whether anything but white space and further semicolons follows a semicolon. */
const goesOn = (sql: string): boolean => {
  const end = sql.indexOf(";")
  return end >= 0 && /[^\s;]/.test(sql.slice(end))
}

/** What holds for any statement whatever its grammar, and then what the application says. */
const inspectOwn = ({ countsStatements = false, inspect }: Dialect, sql: string): Verdict => {
  if (sql.trim() === "") return Effect.fail(blank)
  if (sql.length > longestStatement) return Effect.fail(tooLong)
  if (!countsStatements && goesOn(sql)) return Effect.fail(severalStatements)
  return Effect.suspend(() => inspect(sql)).pipe(
    Effect.disconnect,
    Effect.timeoutFail({ duration: patience, onTimeout: () => undecided })
  )
}

/**
 * Admits one read statement of `engine`, ours by its name or an application's own by its Dialect, or says which rule it
 * breaks. The engine is not touched.
 */
export const admit = (
  engine: Engine | Dialect,
  statement: Statement
): Effect.Effect<AdmittedQuery, QueryRejected> =>
  Effect.map(
    typeof engine === "string" ? dialectOf(engine).inspect(statement.sql) : inspectOwn(engine, statement.sql),
    (mode) => mint({ ...statement, engine, mode })
  )
