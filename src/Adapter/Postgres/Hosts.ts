/**
 * Finds a session: an idle one, or one of the first host of the configuration that can be reached, and is of the wanted
 * kind. In which order hosts and ways of encryption are tried, and where trying ends, is libpq's.
 */
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Random from "effect/Random"
import type * as Scope from "effect/Scope"
import { ConnectionFailed, type ConnectionReason, connectionMessage } from "../../QueryError.js"
import { type Config, hostsOf, type TargetSessionAttrs } from "./Config.js"
import { execute, readOnly } from "./Execution.js"
import { connecting, engineError } from "./Failure.js"
import type { Facts, Held, SessionPool } from "./SessionPool.js"
import { attempts } from "./Tls.js"
import type { Sink, Target } from "./Wire.js"

const factsQuery = `select (select reset_val from pg_catalog.pg_settings where name = 'statement_timeout'), pg_catalog.pg_is_in_recovery(), 0::pg_catalog.money`

/** Of an engine that does not answer the question. */
const unknownFacts: Facts = { statementTimeout: 0, standby: false, moneyDigits: 2 }

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

/** Takes a session until the scope closes. */
export const acquirer = (
  config: Config,
  pool: SessionPool
): Effect.Effect<Held, ConnectionFailed, Scope.Scope> => {
  const hosts = hostsOf(config)
  const { targetSessionAttrs: wanted } = config
  /** The host that served last. */
  let preferred = 0

  /** Asks a new session what it is, within the time that opening one may take. */
  const learn = (held: Held): Effect.Effect<Facts, ConnectionFailed> => {
    const rows: Array<ReadonlyArray<string | null>> = []
    const sink: Sink = { columns: () => {}, row: (row) => rows.push(row) > 0 }
    const limit = config.connectTimeoutMs
    return execute(
      pool,
      held,
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

  /** Hosts in the order in which they are tried, the one that served last in front. */
  const order: Effect.Effect<ReadonlyArray<number>> =
    config.loadBalanceHosts === "random"
      ? Effect.map(Random.shuffle(hosts.keys()), Chunk.toReadonlyArray)
      : Effect.sync(() => hosts.map((_, i) => (preferred + i) % hosts.length))

  /** Makes sure that a session is of the wanted kind; null, and given back, where it is not. */
  const suit = (held: Held, kind: TargetSessionAttrs): Effect.Effect<Held | null, ConnectionFailed> => {
    const { session } = held
    // One that has served before was of the wanted kind then.
    if (session.facts !== undefined) return Effect.succeed(held)
    return learn(held).pipe(
      Effect.map((facts) => {
        session.facts = facts
        if (fits(kind, facts.standby)) return held
        held.reusable = false
        held.giveBack()
        return null
      }),
      Effect.tapError(() => Effect.sync(held.giveBack))
    )
  }

  /** A new session on this host. */
  const open = (index: number, kind: TargetSessionAttrs) =>
    Effect.gen(function* () {
      const { host, port } = hosts[index] ?? { host: "localhost", port: 5432 }
      let failure: ConnectionFailed | undefined
      for (const tls of yield* attempts(config, host)) {
        const to: Target = { host, port, tls, direct: config.sslNegotiation === "direct" }
        const attempt = pool.checkOut(to).pipe(
          Effect.mapError(connecting),
          Effect.flatMap((held) => suit(held, kind))
        )
        const found = yield* attempt.pipe(
          Effect.catchIf(
            ({ engine }) => engine?.code === "08P01" && config.options === undefined && pool.dropSettings(),
            () => attempt
          ),
          Effect.either
        )
        if (Either.isRight(found)) return found.right
        failure = found.left
        if (!nextAttempt(failure)) break
      }
      return yield* failure ?? unsuitable(kind)
    })

  const idle = Effect.gen(function* () {
    while (pool.idleCount() > 0) {
      const held = yield* Effect.mapError(pool.checkOut(pool.lastTarget()), connecting)
      if (pool.isCurrent(held.session)) return yield* suit(held, wanted)
      held.giveBack()
    }
    return null
  })

  return Effect.gen(function* () {
    const found = yield* idle
    if (found !== null) return found
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
}
