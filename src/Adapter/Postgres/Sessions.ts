/**
 * The sessions of one source: a pool over the hosts of its configuration. It opens them when they are needed, hands
 * each to one caller at a time, and throws away what was lost or may still be at work.
 */
import { userInfo } from "node:os"
import * as Chunk from "effect/Chunk"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as ExecutionStrategy from "effect/ExecutionStrategy"
import * as Exit from "effect/Exit"
import * as Random from "effect/Random"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import pg from "pg"
import {
  ConnectionFailed,
  type ConnectionReason,
  connectionMessage,
  type QueryFailed
} from "../../QueryError.js"
import { connectAs, Owner } from "../Owner.js"
import { cancel } from "./Cancel.js"
import { type Config, hostsOf, type TargetSessionAttrs } from "./Config.js"
import { connecting, engineError, lost } from "./Failure.js"
import { attempts } from "./Tls.js"
import {
  type Frame,
  type Login,
  type Outcome,
  run,
  Session,
  type Sink,
  type StatementText,
  type Target
} from "./Wire.js"

/** What is asked of a session once, when it is opened. */
interface Facts {
  /** The login's own limit in milliseconds; 0: none. */
  readonly statementTimeout: number
  readonly standby: boolean
}

export class PooledSession extends Session {
  /** Set by the pool. */
  declare readonly release: (destroy: boolean) => void
  facts: Facts | undefined
  /** Learnt when a value needs it. */
  moneyDigits: number | undefined
  readonly generation: number

  constructor(target: Target, login: Login, generation: number) {
    super(target, login)
    this.generation = generation
  }
}

interface Held {
  readonly session: PooledSession
  /** It is as it was when it was opened. */
  reusable: boolean
  /** The engine was asked to stop, and may act on it at any later time: not to be used again. */
  spoilt: boolean
}

/** A session in the hands of one caller, until its scope closes. */
export interface Lease {
  readonly session: PooledSession
  /**
   * Runs one statement in a read-only transaction of its own, which leaves nothing in the session. Interruption stops
   * it in the engine.
   */
  readonly run: (
    statement: StatementText,
    sink: Sink,
    timeoutMs: number
  ) => Effect.Effect<Ran, ConnectionFailed | QueryFailed>
  /** Runs one statement as it is, for a transaction of several. */
  readonly runBare: (
    statement: StatementText,
    sink: Sink
  ) => Effect.Effect<Ran, ConnectionFailed | QueryFailed>
  /** Ends a transaction that is still open, and clears the session. */
  readonly clear: Effect.Effect<void>
}

/** How a statement in a session that goes on ended. */
export type Ran =
  | { readonly _tag: "Completed" }
  /** `timedOut`: it had run for as long as it may. */
  | { readonly _tag: "Refused"; readonly error: unknown; readonly timedOut: boolean }
  | { readonly _tag: "Oversized" }

export interface Sessions {
  readonly lease: Effect.Effect<Lease, ConnectionFailed, Scope.Scope>
  /** A lease for {@link Lease.runBare}, cleared at the end. */
  readonly reserve: Effect.Effect<Lease, ConnectionFailed, Scope.Scope>
  /** The login's name, and the database's. */
  readonly login: Login
}

const factsQuery = `select (select reset_val from pg_catalog.pg_settings where name = 'statement_timeout'), pg_catalog.pg_is_in_recovery()`

/**
 * The settings under which values are read (see `Value.ts`). `DateStyle` is given without an order of day and month,
 * and `TimeZone` not at all: a statement means what it means to the login. Strings are read as the grammar reads them.
 */
const readOnly = (timeout: number): Frame => ({
  before: `BEGIN READ ONLY; SET LOCAL statement_timeout = ${timeout}; SET LOCAL datestyle = 'ISO'; SET LOCAL intervalstyle = 'iso_8601'; SET LOCAL bytea_output = 'hex'; SET LOCAL extra_float_digits = 1; SET LOCAL standard_conforming_strings = on`,
  // Clears locks, settings, prepared statements and whatever else a function may have left. It stands alone, since it
  // cannot be part of a transaction.
  after: ["ROLLBACK", "DISCARD ALL"]
})

/** An empty statement, which is answered in any state, shows that the session goes on. */
const bare: Frame = { before: "", after: [""] }

/** The engine's limit ends just before the caller's, so that a statement that runs out of time leaves the session usable. */
const limitOf = (facts: Facts | undefined, timeoutMs: number): number => {
  const own = Math.max(1, Math.min(2_147_483_647, Math.floor(timeoutMs) - 10))
  const theirs = facts?.statementTimeout ?? 0
  return theirs > 0 ? Math.min(own, theirs) : own
}

const fits = (wanted: TargetSessionAttrs, standby: boolean): boolean => {
  switch (wanted) {
    case "any":
      return true
    case "read-write":
    case "primary":
      return !standby
    case "read-only":
    case "standby":
    case "prefer-standby":
      return standby
  }
}

/** Where libpq, too, goes on to the next host. Elsewhere the answer would be the same, or is about the login. */
const nextHost: ReadonlySet<ConnectionReason> = new Set<ConnectionReason>([
  "refused",
  "timeout",
  "dns",
  "closed",
  "too_many_connections"
])

/** Whether TLS after plain text, or plain text after TLS, may succeed where this failed. */
const nextAttempt = (failure: ConnectionFailed): boolean =>
  failure.reason === "tls" || engineError(failure.cause)?.code?.startsWith("28") === true

const unsuitable = (wanted: TargetSessionAttrs) =>
  new ConnectionFailed({
    reason: "refused",
    message: connectionMessage.refused,
    hint: `No server of the source is what its configuration asks for (target_session_attrs ${wanted}).`
  })

const noop = () => {}
const nothing: Sink = { columns: noop, row: () => true }
const emptySelect: StatementText = { text: "select", values: [], rows: 1 }
/** Milliseconds that clearing a session may take. */
const clearing = 5000

export const make = (config: Config): Effect.Effect<Sessions, never, Scope.Scope> =>
  Effect.gen(function* () {
    const owner = yield* Owner
    const user = config.user ?? userInfo().username
    const login: Login = {
      user,
      database: config.database ?? user,
      password: config.password === undefined ? undefined : Redacted.value(config.password),
      applicationName: config.applicationName,
      options: ["-c default_transaction_read_only=on", config.options ?? ""].join(" ").trim(),
      connectTimeoutMs: config.connectTimeoutMs,
      channelBinding: config.channelBinding === "prefer"
    }

    const open = new Set<Session>()
    /** Sessions of an earlier generation were open when another one was lost, and are likely to be lost as well. */
    let generation = 0
    /** The host that served last. */
    let preferred = 0
    let target: Target = { host: "localhost", port: 5432, tls: null, direct: false }
    let opened: PooledSession | undefined
    const takeOpened = () => {
      const session = opened
      opened = undefined
      return session
    }

    const pool = new pg.Pool({
      max: config.maxConnections,
      connectionTimeoutMillis: config.connectTimeoutMs,
      idleTimeoutMillis: 60_000,
      Client: class extends PooledSession {
        constructor() {
          super(target, login, generation)
          opened = this
          open.add(this)
          this.once("end", () => open.delete(this))
        }
      }
    })
    // An idle session that ends would otherwise end the process; the pool has already dropped it.
    pool.on("error", noop)

    yield* Effect.addFinalizer(() =>
      Effect.async<void>((resume) => {
        const finish = () => {
          clearTimeout(patience)
          for (const session of open) session.destroy()
          resume(Effect.void)
        }
        const patience = setTimeout(finish, 1000)
        pool.end(finish)
      })
    )

    /** One session from the pool, idle or opened at `to`. Its scope gives it back, or ends it unless it is `reusable`. */
    const checkOut = (to: Target): Effect.Effect<Held, unknown, Scope.Scope> =>
      Effect.uninterruptibleMask((restore) =>
        Effect.gen(function* () {
          let arrived: PooledSession | undefined
          const session = yield* restore(
            Effect.async<PooledSession, unknown>((resume) => {
              let awaited = true
              takeOpened()
              target = to
              connectAs(owner, () =>
                pool.connect((error, client) => {
                  if (!(client instanceof PooledSession)) {
                    if (awaited) resume(Effect.fail(error))
                  } else if (awaited) {
                    arrived = client
                    resume(Effect.succeed(client))
                  } else {
                    client.release(true)
                  }
                })
              )
              const opening = takeOpened()
              return Effect.sync(() => {
                awaited = false
                opening?.destroy()
              })
            })
          ).pipe(Effect.onInterrupt(() => Effect.sync(() => arrived?.release(true))))
          const held: Held = { session, reusable: false, spoilt: false }
          yield* Effect.addFinalizer(() =>
            Effect.sync(() => {
              if (!held.reusable) session.destroy()
              session.release(!held.reusable)
            })
          )
          return held
        })
      )

    const execute = (
      held: Held,
      limit: number,
      frame: Frame,
      statement: StatementText,
      sink: Sink
    ): Effect.Effect<Ran, ConnectionFailed | QueryFailed> =>
      Effect.gen(function* () {
        const { session } = held
        held.reusable = false
        const stop = Effect.suspend(() => {
          held.spoilt = true
          return cancel(session)
        })
        const [elapsed, outcome] = yield* Effect.timed(
          Effect.async<Outcome>((resume) => {
            run(session, frame, statement, sink, (outcome) => resume(Effect.succeed(outcome)))
            return stop
          })
        )
        switch (outcome._tag) {
          case "Completed":
            held.reusable = outcome.reusable
            return { _tag: "Completed" }
          case "Refused":
            held.reusable = outcome.reusable
            return { _tag: "Refused", error: outcome.error, timedOut: Duration.toMillis(elapsed) >= limit }
          case "Lost":
            generation++
            return yield* lost(outcome.error, outcome.rows === 0)
          case "Abandoned":
            yield* stop
            return { _tag: "Completed" }
          case "Oversized":
            yield* stop
            return { _tag: "Oversized" }
          case "Faulty":
            yield* stop
            return yield* Effect.die(outcome.defect)
        }
      })

    /** Asks a new session what it is, within the time that opening one may take. */
    const learn = (held: Held): Effect.Effect<Facts, ConnectionFailed> => {
      const rows: Array<ReadonlyArray<string | null>> = []
      const sink: Sink = { columns: noop, row: (row) => rows.push(row) > 0 }
      const limit = config.connectTimeoutMs
      return execute(held, limit, readOnly(limit), { text: factsQuery, values: [], rows: 2 }, sink).pipe(
        Effect.timeoutFail({
          duration: limit,
          onTimeout: () => new ConnectionFailed({ reason: "timeout", message: connectionMessage.timeout })
        }),
        Effect.catchTag("QueryFailed", ({ cause }) => Effect.fail(connecting(cause))),
        Effect.flatMap((ran) => {
          const [timeout, standby] = rows[0] ?? []
          return ran._tag === "Completed"
            ? Effect.succeed({ statementTimeout: Number(timeout ?? 0), standby: standby === "t" })
            : Effect.fail(connecting(ran._tag === "Refused" ? ran.error : undefined))
        })
      )
    }

    const hosts = hostsOf(config)

    /** Hosts in the order in which they are tried, the one that served last in front. */
    const order: Effect.Effect<ReadonlyArray<number>> =
      config.loadBalanceHosts === "random"
        ? Effect.map(Random.shuffle(hosts.keys()), Chunk.toReadonlyArray)
        : Effect.sync(() => hosts.map((_, i) => (preferred + i) % hosts.length))

    /** A session on this host; null where it is not of the wanted kind. */
    const on = (
      index: number,
      wanted: TargetSessionAttrs,
      scope: Scope.Scope
    ): Effect.Effect<Held | null, ConnectionFailed> =>
      Effect.gen(function* () {
        const { host, port } = hosts[index] ?? { host: "localhost", port: 5432 }
        let failure = new ConnectionFailed({ reason: "refused", message: connectionMessage.refused })
        for (const tls of yield* attempts(config, host)) {
          const to: Target = { host, port, tls, direct: config.sslNegotiation === "direct" }
          for (;;) {
            const own = yield* Scope.fork(scope, ExecutionStrategy.sequential)
            const giveBack = Scope.close(own, Exit.void)
            const found = yield* checkOut(to).pipe(
              Scope.extend(own),
              Effect.mapError(connecting),
              Effect.either
            )
            if (Either.isLeft(found)) {
              yield* giveBack
              failure = found.left
              break
            }
            const held = found.right
            const { session } = held
            if (session.generation < generation) {
              yield* giveBack
              continue
            }
            // One that has served before was of the wanted kind then.
            if (session.facts !== undefined) return held
            const facts = yield* Effect.either(learn(held))
            if (Either.isLeft(facts)) {
              yield* giveBack
              failure = facts.left
              break
            }
            session.facts = facts.right
            if (fits(wanted, facts.right.standby)) return held
            held.reusable = false
            yield* giveBack
            return null
          }
          if (!nextAttempt(failure)) break
        }
        return yield* failure
      })

    const acquire = (scope: Scope.Scope): Effect.Effect<Held, ConnectionFailed> =>
      Effect.gen(function* () {
        const { targetSessionAttrs: wanted } = config
        let failure: ConnectionFailed | undefined
        for (const kind of wanted === "prefer-standby" ? (["standby", "any"] as const) : [wanted]) {
          for (const index of yield* order) {
            const held = yield* Effect.either(on(index, kind, scope))
            if (Either.isRight(held)) {
              if (held.right !== null) {
                preferred = index
                return held.right
              }
              failure = unsuitable(wanted)
            } else {
              if (!nextHost.has(held.left.reason)) return yield* held.left
              failure ??= held.left
            }
          }
        }
        return yield* failure ?? unsuitable(wanted)
      })

    const lease = Effect.gen(function* () {
      const scope = yield* Effect.scope
      const held = yield* acquire(scope)
      const { session } = held
      return {
        session,
        run: (statement, sink, timeoutMs) => {
          const limit = limitOf(session.facts, timeoutMs)
          return execute(held, limit, readOnly(limit), statement, sink)
        },
        runBare: (statement, sink) => execute(held, Number.POSITIVE_INFINITY, bare, statement, sink),
        clear: Effect.suspend(() => {
          if (held.spoilt) return Effect.void
          return Effect.ignore(execute(held, clearing, readOnly(clearing), emptySelect, nothing))
        })
      } satisfies Lease
    })

    const reserve = Effect.tap(lease, ({ clear }) => Effect.addFinalizer(() => clear))

    return { lease, reserve, login }
  })
