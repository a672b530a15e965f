/**
 * The connections of a source. Each is made when a call needs it and given up when it is lost; every call has a session
 * that was reset, and a transaction that is rolled back whatever happens.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Pool from "effect/Pool"
import type { Scope } from "effect/Scope"
import { type AdapterFailure, type ConnectionFailed, QueryRejected } from "../../QueryError.js"
import type { Config } from "./Config.js"
import { connect } from "./Connect.js"
import { type Ending, execute } from "./Execution.js"
import * as SessionSql from "./SessionSql.js"
import type { Wire } from "./Wire.js"

/** What a use of a session says of itself. */
export interface Used<A> {
  readonly value: A
  readonly ending: Ending
}

export interface Sessions {
  /** Runs `use` on a session within a transaction; `timeoutMs` bounds the waiting for locks. */
  readonly transact: <A>(
    timeoutMs: number,
    use: (wire: Wire) => Effect.Effect<Used<A>, AdapterFailure>
  ) => Effect.Effect<A, AdapterFailure>
  /** Runs `use` on a session of its own state, which nobody uses afterwards. */
  readonly exclusive: <A>(
    use: (wire: Wire) => Effect.Effect<A, AdapterFailure>
  ) => Effect.Effect<A, AdapterFailure>
}

/** Idle connections are closed after this long. */
const idleTime = "1 minute"

/** How long the end of a transaction may take before its connection is given up. */
const endTime = "1 second"

/** Connections that a call may need while others are still being cleaned up. */
const spare = 2

/**
 * A place for a connection. The pool hands out places, not connections, so that a call makes its own connection and its
 * own failure, and an interrupted call stops its own attempt.
 */
interface Place {
  wire: Wire | undefined
  generation: number
}

const closePlace = (place: Place) =>
  Effect.sync(() => {
    place.wire?.close()
    place.wire = undefined
  })

const escaped = new QueryRejected({
  reason: "read_only",
  message: "The statement ended its transaction, which this read-only source does not allow."
})

export const make = (config: Config): Effect.Effect<Sessions, never, Scope> =>
  Effect.gen(function* () {
    // A lost connection casts doubt on all that were made before it: the server may have restarted.
    let generation = 0
    const pool = yield* Pool.makeWithTTL({
      acquire: Effect.acquireRelease(
        Effect.sync((): Place => ({ wire: undefined, generation })),
        closePlace
      ),
      min: 0,
      max: config.maxConcurrent + spare,
      timeToLive: idleTime,
      timeToLiveStrategy: "usage"
    })

    const connected = (place: Place): Effect.Effect<Wire, ConnectionFailed> =>
      Effect.suspend(() => {
        const { wire } = place
        if (wire?.idle && place.generation === generation) return Effect.succeed(wire)
        wire?.close()
        place.wire = undefined
        const current = generation
        return Effect.map(connect(config), (made) => {
          place.wire = made
          place.generation = current
          return made
        })
      })

    const noticeLoss = (failure: AdapterFailure) =>
      Effect.sync(() => {
        if (failure._tag === "ConnectionFailed") generation++
      })

    const begin = (wire: Wire, timeoutMs: number) =>
      Effect.suspend(() => {
        wire.resetConnectionOnNextRequest = true
        return execute(wire, {
          sql: SessionSql.begin(Math.min(config.lockTimeoutMs, timeoutMs * 0.8)),
          kind: "batch"
        })
      })

    /** The depth of transactions before all were rolled back; undefined where the connection had to be given up. */
    const end = (wire: Wire): Effect.Effect<number | undefined> =>
      Effect.suspend(() => {
        let depth: unknown
        if (!wire.idle) {
          wire.close()
          return Effect.succeed(undefined)
        }
        const sink = {
          columns: () => {},
          row: (cells: ReadonlyArray<unknown>) => {
            depth = cells[0]
            return true
          }
        }
        return execute(wire, { sql: SessionSql.end, kind: "batch", sink }).pipe(
          Effect.interruptible,
          Effect.timeout(endTime),
          Effect.map(() => (typeof depth === "number" ? depth : undefined)),
          Effect.catchAll(() =>
            Effect.sync(() => {
              wire.close()
              return undefined
            })
          )
        )
      })

    const verify = <A>(
      wire: Wire,
      exit: Exit.Exit<Used<A>, AdapterFailure>,
      depth: number | undefined
    ): Effect.Effect<A, AdapterFailure> => {
      if (Exit.isFailure(exit)) return Effect.failCause(exit.cause)
      const { ending, value } = exit.value
      // A statement that was stopped, or whose answer came before the connection broke, says nothing of its transaction.
      if (ending === "stopped" || depth === undefined || depth === 1) return Effect.succeed(value)
      wire.close()
      return Effect.fail(escaped)
    }

    return {
      transact: (timeoutMs, use) =>
        Effect.scoped(
          Effect.flatMap(Pool.get(pool), (place) =>
            Effect.flatMap(connected(place), (wire) =>
              Effect.uninterruptibleMask((restore) =>
                Effect.exit(
                  restore(
                    Effect.zipRight(begin(wire, timeoutMs), use(wire)).pipe(Effect.tapError(noticeLoss))
                  )
                ).pipe(
                  Effect.flatMap((exit) => Effect.flatMap(end(wire), (depth) => verify(wire, exit, depth)))
                )
              )
            )
          )
        ),
      exclusive: (use) =>
        Effect.scoped(
          Effect.flatMap(Pool.get(pool), (place) =>
            Effect.flatMap(connected(place), (wire) =>
              Effect.ensuring(use(wire).pipe(Effect.tapError(noticeLoss)), closePlace(place))
            )
          )
        )
    }
  })
