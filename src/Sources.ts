/**
 * From an id to an adapter, and everything that holds for a call on any engine: places and a bounded queue, the
 * deadline, one retry after a lost connection, and the log of a source's connections.
 */
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Scope from "effect/Scope"
import { Owner, type OwnerToken } from "./Adapter/Owner.js"
import type { AdapterService } from "./Adapter.js"
import { CallLog } from "./CallLog.js"
import { type AdapterFailure, QueryFailed, QueryRejected } from "./QueryError.js"
import type { Limits } from "./Settings/Limits.js"
import type { SourceSettings } from "./Settings.js"
import * as Breaker from "./Sources/Breaker.js"
import * as ConnectionEvents from "./Sources/ConnectionEvents.js"

/** What a call and its source have to tell each other beside the answer. */
export class CurrentCall extends Context.Tag("mcp-query/CurrentCall")<
  CurrentCall,
  {
    /** How often the statement has been sent, for the log. */
    readonly attempts: Ref.Ref<number>
    /** Waits while the client does not take answers, so that they do not pile up. */
    readonly awaitReader: Effect.Effect<void>
  }
>() {}

export interface Source {
  readonly id: string
  readonly engine: AdapterService["engine"]
  readonly description: string | undefined
  readonly limits: Limits
  /**
   * Runs `use` on the source's adapter, in its turn. Whatever the engine does, the answer comes within `timeoutMs`
   * (and the adapter's own time to stop a statement); `use` hears how much of it is left.
   */
  readonly run: <A>(
    timeoutMs: number,
    use: (adapter: AdapterService, remainingMs: number) => Effect.Effect<A, AdapterFailure>
  ) => Effect.Effect<A, AdapterFailure, CurrentCall>
  /** A fault of the driver outside of any call: true where `by` owns this source's connections. */
  readonly crashed: (by: OwnerToken, error: unknown) => boolean
  /** The adapter itself, for what is no call of a client. */
  readonly adapter: Effect.Effect<AdapterService>
}

export interface SourcesService {
  readonly all: ReadonlyArray<Source>
  readonly get: (id: string) => Option.Option<Source>
}

export class Sources extends Context.Tag("mcp-query/Sources")<Sources, SourcesService>() {}

/** A statement with a short time is not made to pay for the start of what runs it. */
const startUpMs = 750

/** Calls that wait for a place; beyond it they are turned away at once. */
const maxQueued = 256

/** The driver of an engine is loaded with the first call that needs it. */
const acquire = (settings: SourceSettings): Effect.Effect<AdapterService, never, Scope.Scope> => {
  switch (settings.engine) {
    case "sqlite":
      return Effect.flatMap(
        Effect.promise(() => import("./Adapter/Sqlite.js")),
        ({ make }) => make(settings.config)
      )
    case "postgres":
      return Effect.flatMap(
        Effect.promise(() => import("./Adapter/Postgres.js")),
        ({ make }) => make(settings.config)
      )
    case "mssql":
      return Effect.flatMap(
        Effect.promise(() => import("./Adapter/SqlServer.js")),
        ({ make }) => make(settings.config)
      )
    case "excel":
    case "csv":
      return Effect.flatMap(
        Effect.promise(() => import("./Adapter/Excel.js")),
        ({ make }) => make(settings.config)
      )
  }
}

const overloaded = new QueryRejected({
  reason: "overloaded",
  message: "Too many calls are waiting for this source.",
  hint: "Wait for answers before sending more calls."
})

const timedOut = (timeoutMs: number) =>
  new QueryFailed({
    reason: "timeout",
    message: `The statement was stopped after ${timeoutMs} ms.`,
    hint: "Narrow the statement (a WHERE, fewer joins, an aggregate), or raise timeoutMs up to the source's limit."
  })

const isWorthRetrying = (failure: AdapterFailure): boolean =>
  failure._tag === "ConnectionFailed" && failure.reason === "closed" && failure.beforeFirstRow === true

const make = (settings: SourceSettings): Effect.Effect<Source, never, CallLog | Scope.Scope> =>
  Effect.gen(function* () {
    const log = yield* CallLog
    const scope = yield* Effect.scope
    const { engine, id, limits } = settings
    const owner: OwnerToken = { source: id }
    const ready = yield* Deferred.make<AdapterService>()
    const begin = yield* Effect.once(
      acquire(settings).pipe(
        Scope.extend(scope),
        Effect.provideService(Owner, owner),
        Effect.intoDeferred(ready),
        Effect.forkIn(scope)
      )
    )
    // In a fiber of its own, because whoever asks first may be interrupted and the adapter is for everyone.
    const adapter = Effect.zipRight(Effect.interruptible(begin), Deferred.await(ready))
    const places = yield* Effect.makeSemaphore(limits.maxConcurrent)
    let queued = 0
    // False before the first answer, and after a statement was stopped: the next one may have to wait for a connection.
    let warm = false
    const events = ConnectionEvents.make(id, log, scope)
    const breaker = Breaker.make(id, log)

    const inTurn = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | QueryRejected, R> =>
      Effect.suspend((): Effect.Effect<A, E | QueryRejected, R> => {
        if (queued >= maxQueued + limits.maxConcurrent) return Effect.fail(overloaded)
        queued++
        return Effect.ensuring(
          places.withPermits(1)(effect),
          Effect.sync(() => {
            queued--
          })
        )
      })

    return {
      id,
      engine,
      description: settings.description,
      limits,
      adapter,
      crashed: (by, error) => {
        if (by !== owner) return false
        breaker.crashed(error)
        return true
      },
      run: (timeoutMs, use) =>
        Effect.gen(function* () {
          const { attempts, awaitReader } = yield* CurrentCall
          const from = performance.now()
          const attempt = Effect.zipRight(
            Ref.update(attempts, (n) => n + 1),
            Effect.flatMap(adapter, (service) =>
              events.watch(service, use(service, Math.max(1, timeoutMs - (performance.now() - from)))).pipe(
                Effect.onExit((exit) =>
                  Effect.sync(() => {
                    warm = !Exit.isInterrupted(exit)
                  })
                )
              )
            )
          )
          return yield* inTurn(
            Effect.zipRight(
              awaitReader,
              breaker.guard(Effect.retry(attempt, { times: 1, while: isWorthRetrying }))
            )
          ).pipe(
            // An adapter that takes long to stop a statement keeps its place, but not the caller.
            Effect.disconnect,
            Effect.timeoutFail({
              duration: warm ? timeoutMs : timeoutMs + startUpMs,
              onTimeout: () => timedOut(timeoutMs)
            })
          )
        })
    }
  })

/** The sources of the settings. Nothing is contacted before a first call; adapters end with the scope. */
export const fromSettings = (
  settings: ReadonlyArray<SourceSettings>
): Effect.Effect<SourcesService, never, CallLog | Scope.Scope> =>
  Effect.map(Effect.forEach(settings, make), (all) => ({
    all,
    get: (id) => Option.fromNullable(all.find((source) => source.id === id))
  }))
