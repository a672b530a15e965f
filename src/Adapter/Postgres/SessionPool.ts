/**
 * The open sessions of one source: handed to one caller at a time, kept while they are idle, thrown away when they
 * were lost or may still be at work.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import pg from "pg"
import { awaitDriver, connectAs, Owner, type OwnerToken } from "../Owner.js"
import type { Config } from "./Config.js"
import { type Login, Session, type Target } from "./Wire.js"

/** What is asked of a session once, when it is opened. */
export interface Facts {
  /** The login's own limit in milliseconds; 0: none. */
  readonly statementTimeout: number
  readonly standby: boolean
  /** Digits after the decimal point of `money`, by the session's `lc_monetary`. */
  readonly moneyDigits: number
}

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

/** A session in the hands of one caller. */
export interface Held {
  readonly session: PooledSession
  /** It is as it was when it was opened. */
  reusable: boolean
  /** The engine was asked to stop, and may act on it at any later time: not to be used again. */
  spoilt: boolean
  /** Back into the pool, or ended unless it is `reusable`; a second time does nothing. */
  readonly giveBack: () => void
}

/**
 * The settings under which values are read (see `Value.ts`) and strings are understood as the grammar understands them.
 * `TimeZone` is not among them: a statement means what it means to the login.
 */
export const settings = [
  "default_transaction_read_only=on",
  "intervalstyle=iso_8601",
  "bytea_output=hex",
  "extra_float_digits=1",
  "quote_all_identifiers=off",
  "standard_conforming_strings=on"
]

export interface SessionPool {
  /** Whose its connections are. */
  readonly owner: OwnerToken | undefined
  readonly idleCount: () => number
  /** An idle session, or one that is opened at `to`, until the scope closes. Fails with what the driver says. */
  readonly checkOut: (to: Target) => Effect.Effect<Held, unknown, Scope.Scope>
  /**
   * Hands over an idle session without a scope, for a caller that gives it back itself; undefined where the next one is
   * of no use, and when the returned function was called before.
   */
  readonly takeIdle: (use: (held: Held | undefined) => void) => () => void
  /** Where {@link checkOut} last looked for a session. */
  readonly lastTarget: () => Target
  /** False of those that were open when another one was lost: they are likely to be lost as well. */
  readonly isCurrent: (session: PooledSession) => boolean
  readonly suspectAll: () => void
  /** Opens sessions without {@link settings} from now on, as poolers such as PgBouncer refuse them; false if it does. */
  readonly dropSettings: () => boolean
}

export const make = (
  config: Config,
  login: Omit<Login, "options">
): Effect.Effect<SessionPool, never, Scope.Scope> =>
  Effect.gen(function* () {
    const owner = yield* Owner
    // The last of two equal settings counts.
    const options = [config.options ?? "", ...settings.map((setting) => `-c ${setting}`)].join(" ").trim()
    let preset = true

    const alive = new Set<Session>()
    let generation = 0
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
    pool.on("error", () => {})

    yield* Effect.addFinalizer(() =>
      awaitDriver<void>((resume) => {
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
          // The pool may open a session for whoever waits, then and there.
          connectAs(owner, () => session.release(!held.reusable))
        }
      }
      return held
    }

    const isCurrent = (session: PooledSession) => session.generation === generation

    return {
      owner,
      idleCount: () => pool.idleCount,

      checkOut: (to) =>
        Effect.uninterruptibleMask((restore) =>
          Effect.gen(function* () {
            let arrived: PooledSession | undefined
            const session = yield* restore(
              awaitDriver<PooledSession, unknown>((resume) => {
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
        ),

      takeIdle: (use) => {
        let awaited = true
        connectAs(owner, () =>
          pool.connect((_, session) => {
            const known = session instanceof PooledSession ? session : undefined
            const usable = known?.facts !== undefined && isCurrent(known)
            if (known !== undefined && usable && awaited) return use(hold(known))
            known?.release(!usable)
            if (awaited) use(undefined)
          })
        )
        return () => {
          awaited = false
        }
      },

      lastTarget: () => target,
      isCurrent,
      suspectAll: () => {
        generation++
      },
      dropSettings: () => {
        const were = preset
        preset = false
        return were
      }
    }
  })
