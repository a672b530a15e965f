/**
 * A driver that throws from a socket's handler leaves its caller waiting for ever. Here such a throw becomes the failure of
 * the source's pending calls; a second one of the same kind within a short time keeps calls away from the source for a while.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type { CallLogService } from "../CallLog.js"
import { type AdapterFailure, ConnectionFailed, connectionMessage } from "../QueryError.js"

export interface Breaker {
  /** Runs `effect` unless the breaker is open; fails with `crashed`'s fault when there is one meanwhile. */
  readonly guard: <A>(effect: Effect.Effect<A, AdapterFailure>) => Effect.Effect<A, AdapterFailure>
  /** A fault of the source's driver outside of any call. */
  readonly crashed: (error: unknown) => void
}

/** Two identical faults within this time open the breaker. */
const windowMs = 30_000
/** How long it stays open before one call may try. */
const openMs = 5000

const kindOf = (error: unknown) =>
  error instanceof Error ? `${error.name}: ${error.message}` : String(error)

const closedBy = (cause: unknown) =>
  new ConnectionFailed({ reason: "closed", message: connectionMessage.closed, cause })

const open = (cause: unknown) =>
  new ConnectionFailed({
    reason: "closed",
    message: "The data source's driver failed repeatedly; calls are held back for a few seconds.",
    hint: "Wait some seconds and repeat the call.",
    cause
  })

export const make = (
  source: string,
  log: CallLogService,
  /** Runs what is logged of a fault, outside of any call. */
  fork: (effect: Effect.Effect<void>) => void,
  now: () => number = () => performance.now()
): Breaker => {
  const fresh = () => Deferred.unsafeMake<never, ConnectionFailed>(Effect.runSync(Effect.fiberId))
  let pending = fresh()
  let last: { readonly kind: string; readonly at: number; readonly error: unknown } | undefined
  let openSince: number | undefined
  let probing = false

  const raced = <A>(effect: Effect.Effect<A, AdapterFailure>) =>
    Effect.suspend(() => Effect.raceFirst(effect, Deferred.await(pending)))

  /** The one call that tries while the others are still held back. */
  const probe = <A>(effect: Effect.Effect<A, AdapterFailure>) =>
    Effect.suspend(() => {
      probing = true
      return raced(effect).pipe(
        Effect.tap(() =>
          Effect.suspend(() => {
            openSince = undefined
            last = undefined
            return log.event("info", "source_recovered", { source, breaker: "closed" })
          })
        ),
        Effect.ensuring(
          Effect.sync(() => {
            probing = false
          })
        )
      )
    })

  return {
    guard: (effect) =>
      Effect.suspend(() => {
        if (openSince === undefined) return raced(effect)
        const mayTry = !probing && now() - openSince >= openMs
        return mayTry ? probe(effect) : Effect.fail(open(last?.error))
      }),
    crashed: (error) => {
      const at = now()
      const kind = kindOf(error)
      const repeated = last !== undefined && last.kind === kind && at - last.at <= windowMs
      last = { kind, at, error }
      if (repeated) openSince = at
      fork(log.event("error", "source_lost", { source, breaker: repeated ? "open" : "closed", cause: error }))
      const failed = pending
      pending = fresh()
      Deferred.unsafeDone(failed, Effect.fail(closedBy(error)))
    }
  }
}
