/** One statement in a session that is held: what stands around it, how long it may take, and what its end means. */
import * as Effect from "effect/Effect"
import type { ConnectionFailed, QueryFailed } from "../../QueryError.js"
import { awaitDriver, connectAs } from "../Owner.js"
import { cancel } from "./Cancel.js"
import { lost } from "./Failure.js"
import { type Facts, type Held, type PooledSession, type SessionPool, settings } from "./SessionPool.js"
import { type Frame, type Outcome, run, type Sink, type StatementText } from "./Wire.js"

/** How a statement in a session that goes on ended. */
export type Ran =
  | { readonly _tag: "Completed" }
  /** `timedOut`: it had run for as long as it may. */
  | { readonly _tag: "Refused"; readonly error: unknown; readonly timedOut: boolean }
  | { readonly _tag: "Oversized" }

/** For a session that was opened without {@link settings}. */
const localSettings = settings.map((setting) => `SET LOCAL ${setting.replace("=", " = ")}`)

/** What stands around a statement, and how long it may run before the engine stops it. */
export interface Transaction extends Frame {
  readonly limitMs: number
}

/** A read-only transaction of its own, which leaves nothing in the session. */
export const readOnly = (limitMs: number, session: PooledSession): Transaction => ({
  limitMs,
  before: [
    "BEGIN READ ONLY",
    `SET LOCAL statement_timeout = ${limitMs}`,
    ...(session.preset ? [] : localSettings),
    // The engine would refuse to send text that is not valid UTF-8, where it does not know what its text is.
    ...(session.parameter("server_encoding") === "SQL_ASCII"
      ? ["SET LOCAL client_encoding = 'SQL_ASCII'"]
      : []),
    // Not a setting of the session: it would replace the login's order of day and month as well.
    ...(session.parameter("DateStyle")?.startsWith("ISO") === true ? [] : ["SET LOCAL datestyle = 'ISO'"])
  ].join("; "),
  // Clears locks, settings, prepared statements and whatever else a function may have left. It stands alone, since it
  // cannot be part of a transaction.
  after: ["ROLLBACK", "DISCARD ALL"]
})

/** An empty statement, which is answered in any state, shows that the session goes on. */
export const bare: Transaction = { limitMs: Number.POSITIVE_INFINITY, before: "", after: [""] }

/** The engine's limit ends just before the caller's, so that a statement that runs out of time leaves the session usable. */
export const limitOf = (facts: Facts | undefined, timeoutMs: number): number => {
  const own = Math.max(1, Math.min(2_147_483_647, Math.floor(timeoutMs) - 10))
  const theirs = facts?.statementTimeout ?? 0
  return theirs > 0 ? Math.min(own, theirs) : own
}

/** Asks the engine to stop; the session cannot be used again. */
export const stop = (held: Held) => {
  held.spoilt = true
  held.reusable = false
  return cancel(held.session)
}

/** What an outcome means for the session, at once, and for the caller. */
const conclude = (
  pool: SessionPool,
  held: Held,
  { limitMs }: Transaction,
  outcome: Outcome,
  millis: number
): Effect.Effect<Ran, ConnectionFailed | QueryFailed> => {
  switch (outcome._tag) {
    case "Completed":
      held.reusable = outcome.reusable && !held.spoilt
      return Effect.succeed({ _tag: "Completed" })
    case "Refused":
      held.reusable = outcome.reusable && !held.spoilt
      return Effect.succeed({ _tag: "Refused", error: outcome.error, timedOut: millis >= limitMs })
    case "Lost":
      pool.suspectAll()
      return lost(outcome.error, outcome.rows === 0)
    case "Abandoned":
      return Effect.as(stop(held), { _tag: "Completed" })
    case "Oversized":
      return Effect.as(stop(held), { _tag: "Oversized" })
    case "Faulty":
      return Effect.zipRight(stop(held), Effect.die(outcome.defect))
  }
}

/** Runs a statement at once; `ended` is called once. Where the caller goes away before, it must {@link stop} it. */
export const begin = (
  pool: SessionPool,
  held: Held,
  transaction: Transaction,
  statement: StatementText,
  sink: Sink,
  ended: (ran: Effect.Effect<Ran, ConnectionFailed | QueryFailed>) => void
): void => {
  held.reusable = false
  // A write that fails is told where it was begun, not where the connection was made.
  connectAs(pool.owner, () =>
    run(held.session, transaction, statement, sink, (outcome, millis) =>
      ended(conclude(pool, held, transaction, outcome, millis))
    )
  )
}

/** Runs a statement; interruption stops it in the engine. */
export const execute = (
  pool: SessionPool,
  held: Held,
  transaction: Transaction,
  statement: StatementText,
  sink: Sink
): Effect.Effect<Ran, ConnectionFailed | QueryFailed> =>
  awaitDriver((resume) => {
    begin(pool, held, transaction, statement, sink, resume)
    return Effect.suspend(() => stop(held))
  })
