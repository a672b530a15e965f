/**
 * Attempts to connect. Where a call is interrupted before its connection stands, the attempt goes on by itself and a later
 * call takes what comes of it: otherwise calls that are shorter than a login would never get further.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type { Scope } from "effect/Scope"
import type { ConnectionFailed } from "../../QueryError.js"
import type { Wire } from "./Wire.js"

type Attempt = Fiber.RuntimeFiber<Wire, ConnectionFailed>

/** What nobody takes is closed after this long. */
const unwanted = "1 minute"

/** The effect connects, or takes the connection of an attempt whose call has left, whichever is there first. */
export const make = (
  connect: Effect.Effect<Wire, ConnectionFailed>
): Effect.Effect<Effect.Effect<Wire, ConnectionFailed>, never, Scope> =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const left = new Set<Attempt>()

    const discard = (attempt: Attempt) =>
      Effect.flatMap(
        Effect.sync(() => left.delete(attempt)),
        (wasLeft) =>
          wasLeft
            ? Effect.flatMap(Fiber.interrupt(attempt), (exit) =>
                Effect.sync(() => {
                  if (Exit.isSuccess(exit)) exit.value.close()
                })
              )
            : Effect.void
      )
    yield* Effect.addFinalizer(() => Effect.forEach([...left], discard, { discard: true }))

    const leave = (attempt: Attempt) =>
      Effect.suspend(() => {
        const made = attempt.unsafePoll()
        if (made !== null && Exit.isFailure(made)) return Effect.void
        left.add(attempt)
        attempt.addObserver((exit) => {
          if (Exit.isFailure(exit)) left.delete(attempt)
        })
        return Effect.forkIn(Effect.interruptible(Effect.delay(discard(attempt), unwanted)), scope)
      })

    /** Not `Fiber.join`: that would bring along the scope of the call that began the attempt. */
    const result = (attempt: Attempt) => Effect.flatten(Fiber.await(attempt))

    const isTaken = (attempt: Attempt, taken: Exit.Exit<Wire, ConnectionFailed>) => {
      const made = attempt.unsafePoll()
      return made !== null && Exit.isSuccess(made) && Exit.isSuccess(taken) && made.value === taken.value
    }

    return Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const others = [...left]
        left.clear()
        const own = yield* Effect.forkIn(Effect.interruptible(connect), scope)
        // What failed for a call that has left is no failure of this one.
        const race = others
          .map((attempt) => Effect.catchAll(result(attempt), () => Effect.never))
          .reduce((first, one) => Effect.raceFirst(first, one), result(own))
        return yield* Effect.onExit(restore(race), (exit) =>
          Effect.forEach(
            [own, ...others].filter((attempt) => !isTaken(attempt, exit)),
            leave,
            { discard: true }
          )
        )
      })
    ).pipe(Effect.repeat({ until: (wire) => wire.idle }))
  })
