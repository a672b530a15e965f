/** What bounds every statement of an adapter's client, on any engine: it is answered whole and in time, or it fails. */
import * as Effect from "effect/Effect"
import { catalogLimits } from "../Adapter.js"
import { QueryFailed } from "../QueryError.js"

const mebibytes = catalogLimits.maxBytes / 2 ** 20

/** A program must never take a part of an answer for the whole. */
export const tooLarge = (): QueryFailed =>
  new QueryFailed({
    reason: "resource_limit",
    message: `The answer has more than ${catalogLimits.maxRows} rows or ${mebibytes} MiB, the most that is read at once.`,
    hint: "Ask for less at a time: fewer rows or columns, or parts of large values."
  })

const tooLong = () =>
  new QueryFailed({
    reason: "timeout",
    message: `The statement was stopped after ${catalogLimits.timeoutMs} ms.`
  })

/** Stops the statement in the engine once its time has passed. */
export const inTime = <A, E, R>(use: Effect.Effect<A, E, R>): Effect.Effect<A, E | QueryFailed, R> =>
  Effect.timeoutFail(use, { duration: catalogLimits.timeoutMs, onTimeout: tooLong })
