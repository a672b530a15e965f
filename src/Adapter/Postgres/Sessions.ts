/**
 * The sessions of one source: a pool over the hosts of its configuration. It opens them when they are needed, hands
 * each to one caller at a time, and throws away what was lost or may still be at work.
 */
import { userInfo } from "node:os"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Random from "effect/Random"
import type * as Scope from "effect/Scope"
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
  /** Digits after the decimal point of `money`, by the session's `lc_monetary`. */
  readonly moneyDigits: number
}

/** Of an engine that does not answer the question. */
const unknownFacts: Facts = { statementTimeout: 0, standby: false, moneyDigits: 2 }

export class PooledSession extends Session {
  /** Set by the pool. */
  declare readonly release: (destroy: boolean) => void
  facts: Facts | undefined
  readonly generation: number
  /** It was opened with {@link settings}. */
  readonly preset: boolean

  constructor(target: Target, login: Login, generation: number, preset: boolean) {
    super(target, login)
    this.generation = generation
    this.preset = preset
  }
}

interface Held {
  readonly session: PooledSession
  /** It is as it was when it was opened. */
  reusable: boolean
  /** The engine was asked to stop, and may act on it at any later time: not to be used again. */
  spoilt: boolean
  /** Back into the pool, or ended unless it is `reusable`; a second time does nothing. */
  readonly giveBack: () => void
}

/** A session in the hands of one caller, until its scope closes. It is cleared then. */
export interface Lease {
  /** Runs one statement as it is, for a transaction of several. */
  readonly run: (statement: StatementText, sink: Sink) => Effect.Effect<Ran, ConnectionFailed | QueryFailed>
}

/** How a statement in a session that goes on ended. */
export type Ran =
  | { readonly _tag: "Completed" }
  /** `timedOut`: it had run for as long as it may. */
  | { readonly _tag: "Refused"; readonly error: unknown; readonly timedOut: boolean }
  | { readonly _tag: "Oversized" }

export interface Sessions {
  /**
   * Runs one statement in any session, in a read-only transaction of its own, which leaves nothing in the session.
   * Interruption stops it in the engine.
   */
  readonly run: (
    statement: StatementText,
    sink: (session: PooledSession) => Sink,
    timeoutMs: number
  ) => Effect.Effect<Ran, ConnectionFailed | QueryFailed>
  readonly reserve: Effect.Effect<Lease, ConnectionFailed, Scope.Scope>
  readonly login: Pick<Login, "user" | "database">
}

const factsQuery = `select (select reset_val from pg_catalog.pg_settings where name = 'statement_timeout'), pg_catalog.pg_is_in_recovery(), 0::pg_catalog.money`

/**
 * The settings under which values are read (see `Value.ts`) and strings are understood as the grammar understands them.
 * `TimeZone` is not among them: a statement means what it means to the login.
 */
const settings = [
  "default_transaction_read_only=on",
  "intervalstyle=iso_8601",
  "bytea_output=hex",
  "extra_float_digits=1",
  "quote_all_identifiers=off",
  "standard_conforming_strings=on"
]

/** For a session that was opened without {@link settings}. */
const localSettings = settings.map((setting) => `SET LOCAL ${setting.replace("=", " = ")}`)

const readOnly = (timeout: number, session: PooledSession): Frame => ({
  before: [
    "BEGIN READ ONLY",
    `SET LOCAL statement_timeout = ${timeout}`,
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
    const login = {
      user,
      database: config.database ?? user,
      password: config.password,
      applicationName: config.applicationName,
      connectTimeoutMs: config.connectTimeoutMs,
      channelBinding: config.channelBinding === "prefer"
    }

    // The last of two equal settings counts.
    const options = [config.options ?? "", ...settings.map((setting) => `-c ${setting}`)].join(" ").trim()
    /** Connection poolers such as PgBouncer refuse settings of a session. */
    let preset = true

    const alive = new Set<Session>()
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
          super(target, { ...login, options: preset ? options : "" }, generation, preset)
          opened = this
          alive.add(this)
          this.once("end", () => alive.delete(this))
        }
      }
    })
    // An idle session that ends would otherwise end the process; the pool has already dropped it.
    pool.on("error", noop)

    yield* Effect.addFinalizer(() =>
      Effect.async<void>((resume) => {
        const finish = () => {
          clearTimeout(patience)
          for (const session of alive) session.destroy()
          resume(Effect.void)
        }
        const patience = setTimeout(finish, 1000)
        pool.end(finish)
      })
    )

    const hold = (session: PooledSession): Held => {
      let given = false
      const held: Held = {
        session,
        reusable: false,
        spoilt: false,
        giveBack: () => {
          if (given) return
          given = true
          if (!held.reusable) session.destroy()
          session.release(!held.reusable)
        }
      }
      return held
    }

    /** One session from the pool, idle or opened at `to`, until the scope closes. */
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
          const held = hold(session)
          yield* Effect.addFinalizer(() => Effect.sync(held.giveBack))
          return held
        })
      )

    /** Asks the engine to stop; the session cannot be used again. */
    const stop = (held: Held) => {
      held.spoilt = true
      held.reusable = false
      return cancel(held.session)
    }

    /** What an outcome means for the session, at once, and for the caller. */
    const conclude = (
      held: Held,
      limit: number,
      outcome: Outcome,
      millis: number
    ): Effect.Effect<Ran, ConnectionFailed | QueryFailed> => {
      switch (outcome._tag) {
        case "Completed":
          held.reusable = outcome.reusable && !held.spoilt
          return Effect.succeed({ _tag: "Completed" })
        case "Refused":
          held.reusable = outcome.reusable && !held.spoilt
          return Effect.succeed({ _tag: "Refused", error: outcome.error, timedOut: millis >= limit })
        case "Lost":
          generation++
          return lost(outcome.error, outcome.rows === 0)
        case "Abandoned":
          return Effect.as(stop(held), { _tag: "Completed" })
        case "Oversized":
          return Effect.as(stop(held), { _tag: "Oversized" })
        case "Faulty":
          return Effect.zipRight(stop(held), Effect.die(outcome.defect))
      }
    }

    const execute = (held: Held, limit: number, frame: Frame, statement: StatementText, sink: Sink) =>
      Effect.async<Ran, ConnectionFailed | QueryFailed>((resume) => {
        held.reusable = false
        run(held.session, frame, statement, sink, (outcome, millis) =>
          resume(conclude(held, limit, outcome, millis))
        )
        return Effect.suspend(() => stop(held))
      })

    /** Asks a new session what it is, within the time that opening one may take. */
    const learn = (held: Held): Effect.Effect<Facts, ConnectionFailed> => {
      const rows: Array<ReadonlyArray<string | null>> = []
      const sink: Sink = { columns: noop, row: (row) => rows.push(row) > 0 }
      const limit = config.connectTimeoutMs
      return execute(
        held,
        limit,
        readOnly(limit, held.session),
        { text: factsQuery, values: [], rows: 2 },
        sink
      ).pipe(
        Effect.timeoutFail({
          duration: limit,
          onTimeout: () => new ConnectionFailed({ reason: "timeout", message: connectionMessage.timeout })
        }),
        Effect.catchTag("QueryFailed", ({ cause }) => Effect.fail(connecting(cause))),
        Effect.map((ran) => {
          const [timeout, standby, zero] = rows[0] ?? []
          return ran._tag === "Completed"
            ? {
                statementTimeout: Number(timeout ?? 0),
                standby: standby === "t",
                moneyDigits: Math.max(0, (zero ?? "").replace(/[^0-9]/g, "").length - 1)
              }
            : unknownFacts
        })
      )
    }

    const hosts = hostsOf(config)

    /** Hosts in the order in which they are tried, the one that served last in front. */
    const order: Effect.Effect<ReadonlyArray<number>> =
      config.loadBalanceHosts === "random"
        ? Effect.map(Random.shuffle(hosts.keys()), Chunk.toReadonlyArray)
        : Effect.sync(() => hosts.map((_, i) => (preferred + i) % hosts.length))

    /** Makes sure that a session is of the wanted kind; null, and given back, where it is not. */
    const suit = (held: Held, wanted: TargetSessionAttrs): Effect.Effect<Held | null, ConnectionFailed> => {
      const { session } = held
      // One that has served before was of the wanted kind then.
      if (session.facts !== undefined) return Effect.succeed(held)
      return learn(held).pipe(
        Effect.map((facts) => {
          session.facts = facts
          if (fits(wanted, facts.standby)) return held
          held.reusable = false
          held.giveBack()
          return null
        }),
        Effect.tapError(() => Effect.sync(held.giveBack))
      )
    }

    /** A new session on this host. */
    const open = (index: number, wanted: TargetSessionAttrs) =>
      Effect.gen(function* () {
        const { host, port } = hosts[index] ?? { host: "localhost", port: 5432 }
        let failure: ConnectionFailed | undefined
        for (const tls of yield* attempts(config, host)) {
          const to: Target = { host, port, tls, direct: config.sslNegotiation === "direct" }
          const attempt = checkOut(to).pipe(
            Effect.mapError(connecting),
            Effect.flatMap((held) => suit(held, wanted))
          )
          const found = yield* attempt.pipe(
            Effect.catchIf(
              ({ engine }) => engine?.code === "08P01" && preset && config.options === undefined,
              () => {
                preset = false
                return attempt
              }
            ),
            Effect.either
          )
          if (Either.isRight(found)) return found.right
          failure = found.left
          if (!nextAttempt(failure)) break
        }
        return yield* failure ?? unsuitable(wanted)
      })

    const acquire: Effect.Effect<Held, ConnectionFailed, Scope.Scope> = Effect.gen(function* () {
      const { targetSessionAttrs: wanted } = config
      while (pool.idleCount > 0) {
        const held = yield* Effect.mapError(checkOut(target), connecting)
        if (held.session.generation === generation) {
          const suitable = yield* suit(held, wanted)
          if (suitable !== null) return suitable
          break
        }
        held.giveBack()
      }
      let failure: ConnectionFailed | undefined
      for (const kind of wanted === "prefer-standby" ? (["standby", "any"] as const) : [wanted]) {
        for (const index of yield* order) {
          const held = yield* Effect.either(open(index, kind))
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

    const runOpened: Sessions["run"] = (statement, sink, timeoutMs) =>
      Effect.scoped(
        Effect.flatMap(acquire, (held) => {
          const limit = limitOf(held.session.facts, timeoutMs)
          return execute(held, limit, readOnly(limit, held.session), statement, sink(held.session))
        })
      )

    /** The same in one step, where a session is idle: taken, used and given back without a detour. */
    const runIdle: Sessions["run"] = (statement, sink, timeoutMs) =>
      Effect.async((resume) => {
        let awaited = true
        let held: Held | undefined
        connectAs(owner, () =>
          pool.connect((_, session) => {
            const known = session instanceof PooledSession ? session : undefined
            const usable = known?.facts !== undefined && known.generation === generation
            if (known === undefined || !usable || !awaited) {
              known?.release(!usable)
              if (awaited) resume(runOpened(statement, sink, timeoutMs))
              return
            }
            const holding = hold(known)
            held = holding
            const limit = limitOf(known.facts, timeoutMs)
            run(known, readOnly(limit, known), statement, sink(known), (outcome, millis) => {
              const ran = conclude(holding, limit, outcome, millis)
              holding.giveBack()
              resume(ran)
            })
          })
        )
        return Effect.suspend(() => {
          awaited = false
          if (held === undefined) return Effect.void
          return Effect.ensuring(stop(held), Effect.sync(held.giveBack))
        })
      })

    const reserve = Effect.gen(function* () {
      const held = yield* acquire
      yield* Effect.addFinalizer(() =>
        held.spoilt
          ? Effect.void
          : Effect.ignore(execute(held, clearing, readOnly(clearing, held.session), emptySelect, nothing))
      )
      return {
        run: (statement, sink) => execute(held, Number.POSITIVE_INFINITY, bare, statement, sink)
      } satisfies Lease
    })

    return {
      run: (statement, sink, timeoutMs) =>
        Effect.suspend(() =>
          pool.idleCount > 0 ? runIdle(statement, sink, timeoutMs) : runOpened(statement, sink, timeoutMs)
        ),
      reserve,
      login
    }
  })
