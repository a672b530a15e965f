/**
 * The connections of a source. Each is made when a call needs it and given up when it is lost; every call has a session
 * that was reset, and a transaction that is rolled back whatever happens.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { type AdapterFailure, QueryRejected } from "../../QueryError.js"
import { Owner } from "../Owner.js"
import * as ResourcePool from "../ResourcePool.js"
import * as Attempts from "./Attempts.js"
import * as Babelfish from "./Babelfish.js"
import type { Config } from "./Config.js"
import { connect } from "./Connect.js"
import { type Ending, execute, quiesce } from "./Execution.js"
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

/**
 * How long the engine may take to acknowledge that it stopped: with the answer waiting for it, and altogether. Babelfish
 * does not hear it, but ends what has run for its time, and a new session costs it much.
 */
const patienceMs = { answer: 150, connection: 400, babelfish: 2000 }

/** How long the end of a transaction may take before its connection is given up. */
const endTime = "1 second"

/** Connections that a call may need while others are still being cleaned up. */
const spare = 2

const transactionLost = new QueryRejected({
  reason: "read_only",
  message: "The statement ended its transaction, which this read-only source does not allow."
})

/**
 * Whether a statement has left its transaction, or opened another. One that failed or was stopped has lost it, and without
 * a depth the answer came before the connection broke.
 */
const escaped = (exit: Exit.Exit<Used<unknown>, unknown>, depth: number | undefined) =>
  Exit.isSuccess(exit) && exit.value.ending === "complete" && depth !== undefined && depth !== 1

export const make = (config: Config): Effect.Effect<Sessions, never, Scope.Scope> =>
  Effect.gen(function* () {
    // A lost connection casts doubt on all that were made before it: the server may have restarted.
    let generation = 0
    let isBabelfish: boolean | undefined
    const owner = yield* Owner
    const scope = yield* Effect.scope
    const born = new WeakMap<Wire, number>()
    const attempt = yield* Attempts.make(
      Effect.suspend(() => {
        const current = generation
        return Effect.tap(connect(config, owner), (wire) => Effect.sync(() => born.set(wire, current)))
      })
    )
    const pool = yield* ResourcePool.make({
      acquire: attempt,
      close: (wire) => Effect.sync(() => wire.close()),
      isFit: (wire) => wire.idle && born.get(wire) === generation,
      max: config.maxConcurrent + spare,
      ready: 0,
      idleTime
    })

    const noticeLoss = (failure: AdapterFailure) =>
      Effect.sync(() => {
        if (failure._tag === "ConnectionFailed") generation++
      })

    /** The first cell that a batch answers with. */
    const cellOf = (wire: Wire, sql: string): Effect.Effect<unknown, AdapterFailure> =>
      Effect.suspend(() => {
        let first: unknown
        const sink = {
          columns: () => {},
          row: ([cell]: ReadonlyArray<unknown>) => {
            first = cell
            return true
          }
        }
        return Effect.map(execute(wire, { sql, kind: "batch", sink }), () => first)
      })

    const begin = (wire: Wire, timeoutMs: number): Effect.Effect<void, AdapterFailure> =>
      Effect.gen(function* () {
        wire.resetConnectionOnNextRequest = true
        const sql = SessionSql.begin(Math.min(config.lockTimeoutMs, timeoutMs * 0.8))
        if (isBabelfish === undefined)
          isBabelfish = (yield* cellOf(wire, `${sql};\n${Babelfish.identify}`)) === 1
        else yield* execute(wire, { sql, kind: "batch" })
        if (isBabelfish) yield* execute(wire, { sql: Babelfish.limitStatements(timeoutMs), kind: "batch" })
      })

    /** The depth of transactions before all were rolled back. */
    const rollBack = (wire: Wire): Effect.Effect<number | undefined, AdapterFailure> =>
      Effect.map(cellOf(wire, SessionSql.end), (depth) => (typeof depth === "number" ? depth : undefined))

    /** Leaves the connection without a transaction, or gives it up: then there is no depth. */
    const end = (wire: Wire): Effect.Effect<number | undefined> =>
      quiesce(wire, isBabelfish === true ? patienceMs.babelfish : patienceMs.connection).pipe(
        Effect.flatMap((idle) =>
          // In a fiber of its own: the one that ends here may have been interrupted.
          idle ? Effect.timeout(Effect.interruptible(rollBack(wire)), endTime) : Effect.succeed(undefined)
        ),
        Effect.catchAll(() => Effect.succeed(undefined)),
        Effect.tap((depth) => (depth === undefined ? Effect.sync(() => wire.close()) : Effect.void)),
        Effect.onInterrupt(() => Effect.sync(() => wire.close()))
      )

    return {
      transact: (timeoutMs, use) =>
        Effect.uninterruptibleMask((restore) =>
          Effect.gen(function* () {
            const from = performance.now()
            const remainingMs = Effect.sync(() => Math.max(1, timeoutMs - (performance.now() - from)))
            const taken = yield* Scope.make()
            const give = Scope.close(taken, Exit.void)
            const wire = yield* restore(Scope.extend(pool.get, taken)).pipe(Effect.onError(() => give))
            const exit = yield* Effect.exit(
              restore(
                remainingMs.pipe(
                  Effect.flatMap((ms) => begin(wire, ms)),
                  Effect.zipRight(use(wire)),
                  Effect.tapError(noticeLoss)
                )
              )
            )
            // Where the engine has yet to stop, the answer does not wait for it. The connection is given back in any case.
            const depth = (yield* quiesce(wire, patienceMs.answer))
              ? yield* Effect.ensuring(end(wire), give)
              : yield* Effect.as(
                  Effect.forkIn(Effect.ensuring(Effect.interruptible(end(wire)), give), scope),
                  undefined
                )
            if (escaped(exit, depth)) {
              wire.close()
              return yield* Effect.fail(transactionLost)
            }
            return yield* Effect.map(exit, ({ value }) => value)
          })
        ),
      exclusive: (use) =>
        Effect.scoped(
          Effect.flatMap(pool.get, (wire) =>
            Effect.ensuring(
              use(wire).pipe(Effect.tapError(noticeLoss)),
              Effect.sync(() => wire.close())
            )
          )
        )
    }
  })
