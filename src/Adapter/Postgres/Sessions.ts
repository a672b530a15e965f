/** What the adapter does with sessions: one statement in any of them, or several in one that is reserved. */
import { userInfo } from "node:os"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { ConnectionFailed, QueryFailed } from "../../QueryError.js"
import { awaitDriver } from "../Owner.js"
import type { Config } from "./Config.js"
import { bare, begin, execute, limitOf, type Ran, readOnly, stop } from "./Execution.js"
import { acquirer } from "./Hosts.js"
import * as SessionPool from "./SessionPool.js"
import type { Login, Sink, StatementText } from "./Wire.js"

/** A session in the hands of one caller, until its scope closes. It is cleared then. */
export interface Lease {
  /** Runs one statement as it is, for a transaction of several. */
  readonly run: (statement: StatementText, sink: Sink) => Effect.Effect<Ran, ConnectionFailed | QueryFailed>
}

export interface Sessions {
  /**
   * Runs one statement in any session, in a read-only transaction of its own, which leaves nothing in the session.
   * Interruption stops it in the engine.
   */
  readonly run: (
    statement: StatementText,
    sink: (session: SessionPool.PooledSession) => Sink,
    timeoutMs: number
  ) => Effect.Effect<Ran, ConnectionFailed | QueryFailed>
  readonly reserve: Effect.Effect<Lease, ConnectionFailed, Scope.Scope>
  readonly login: Pick<Login, "user" | "database">
}

const nothing: Sink = { columns: () => {}, row: () => true }
const emptySelect: StatementText = { text: "select", values: [], rows: 1 }
/** Milliseconds that clearing a session may take. */
const clearing = 5000

export const make = (config: Config): Effect.Effect<Sessions, never, Scope.Scope> =>
  Effect.gen(function* () {
    const user = config.user ?? userInfo().username
    const login = {
      user,
      database: config.database ?? user,
      password: config.password,
      applicationName: config.applicationName,
      connectTimeoutMs: config.connectTimeoutMs,
      channelBinding: config.channelBinding === "prefer"
    }
    const pool = yield* SessionPool.make(config, login)
    const acquire = acquirer(config, pool)

    const runOpened: Sessions["run"] = (statement, sink, timeoutMs) =>
      Effect.scoped(
        Effect.flatMap(acquire, (held) => {
          const limit = limitOf(held.session.facts, timeoutMs)
          return execute(pool, held, readOnly(limit, held.session), statement, sink(held.session))
        })
      )

    /** The same in one step, where a session is idle: taken, used and given back without a detour. */
    const runIdle: Sessions["run"] = (statement, sink, timeoutMs) =>
      awaitDriver((resume) => {
        let taken: SessionPool.Held | undefined
        const giveUp = pool.takeIdle((held) => {
          if (held === undefined) return resume(runOpened(statement, sink, timeoutMs))
          taken = held
          const { session } = held
          const limit = limitOf(session.facts, timeoutMs)
          begin(pool, held, readOnly(limit, session), statement, sink(session), (ran) => {
            held.giveBack()
            resume(ran)
          })
        })
        return Effect.suspend(() => {
          giveUp()
          return taken === undefined ? Effect.void : Effect.ensuring(stop(taken), Effect.sync(taken.giveBack))
        })
      })

    const reserve = Effect.gen(function* () {
      const held = yield* acquire
      yield* Effect.addFinalizer(() =>
        held.spoilt
          ? Effect.void
          : Effect.ignore(execute(pool, held, readOnly(clearing, held.session), emptySelect, nothing))
      )
      return {
        run: (statement, sink) => execute(pool, held, bare, statement, sink)
      } satisfies Lease
    })

    return {
      run: (statement, sink, timeoutMs) =>
        Effect.suspend(() =>
          pool.idleCount() > 0 ? runIdle(statement, sink, timeoutMs) : runOpened(statement, sink, timeoutMs)
        ),
      reserve,
      login
    }
  })
