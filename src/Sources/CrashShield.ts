/**
 * Node ends the process for a throw that nothing catches. Where a driver threw from its socket's handler, the source
 * whose connection it was hears of it instead, and the process goes on.
 */
import * as Effect from "effect/Effect"
import type { Scope } from "effect/Scope"
import { blame } from "../Adapter/Owner.js"

/** Those who want it, in this process; one listener serves them all, so that a source hears of a fault once. */
let users = 0

const onFault = (error: unknown): void => {
  if (blame(error) || process.listenerCount("uncaughtException") > 1) return
  // Nobody's fault, and nobody else listens: what Node does without a listener.
  process.off("uncaughtException", onFault)
  process.nextTick(() => {
    throw error
  })
}

/** Holds for the scope. A fault that is no driver's still ends the process, where nobody else listens. */
export const install: Effect.Effect<void, never, Scope> = Effect.acquireRelease(
  Effect.sync(() => {
    if (users++ === 0) process.on("uncaughtException", onFault)
  }),
  () =>
    Effect.sync(() => {
      if (--users === 0) process.off("uncaughtException", onFault)
    })
)
