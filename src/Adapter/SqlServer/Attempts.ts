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

/** What nobody takes is closed after this long, or twice as long at most. */
const unwanted = "1 minute"

/** The effect connects, or takes the connection of an attempt whose call has left, whichever is there first. */
export const make = (
  connect: Effect.Effect<Wire, ConnectionFailed>
): Effect.Effect<Effect.Effect<Wire, ConnectionFailed>, never, Scope> =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    /** One at most: many short calls would otherwise end in as many connections. The oldest is the furthest. */
    let left: Attempt | undefined

    const take = () => {
      const taken = left
      left = undefined
      return taken
    }

    const discard = (attempt: Attempt | undefined) =>
      attempt === undefined
        ? Effect.void
        : Effect.flatMap(Fiber.interrupt(attempt), (exit) =>
            Effect.sync(() => {
              if (Exit.isSuccess(exit)) exit.value.close()
            })
          )
    yield* Effect.addFinalizer(() => Effect.suspend(() => discard(take())))

    let seen: Attempt | undefined
    const sweep = Effect.suspend(() => {
      const old = left === seen ? take() : undefined
      seen = left
      return discard(old)
    })
    yield* Effect.forkIn(Effect.forever(Effect.delay(sweep, unwanted)), scope)

    const leave = (attempt: Attempt) =>
      Effect.suspend(() => {
        const made = attempt.unsafePoll()
        if (made !== null && Exit.isFailure(made)) return Effect.void
        if (left !== undefined) return Effect.asVoid(Effect.forkIn(discard(attempt), scope))
        left = attempt
        attempt.addObserver((exit) => {
          if (Exit.isFailure(exit) && left === attempt) left = undefined
        })
        return Effect.void
      })

    /** Not `Fiber.join`: that would bring along the scope of the call that began the attempt. */
    const result = (attempt: Attempt) => Effect.flatten(Fiber.await(attempt))

    const isTaken = (attempt: Attempt, taken: Exit.Exit<Wire, ConnectionFailed>) => {
      const made = attempt.unsafePoll()
      return made !== null && Exit.isSuccess(made) && Exit.isSuccess(taken) && made.value === taken.value
    }

    return Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const other = take()
        // Not made interruptible: a connection that stands when the interruption comes would be lost.
        const own = yield* Effect.forkIn(connect, scope)
        const race =
          other === undefined
            ? result(own)
            : // What failed for a call that has left is no failure of this one.
              Effect.raceFirst(
                Effect.catchAll(result(other), () => Effect.never),
                result(own)
              )
        return yield* Effect.onExit(restore(race), (exit) =>
          Effect.forEach(
            [...(other === undefined ? [] : [other]), own].filter((attempt) => !isTaken(attempt, exit)),
            leave,
            { discard: true }
          )
        )
      }).pipe(Effect.repeat({ until: (wire) => wire.idle }))
    )
  })
