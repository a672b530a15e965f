/**
 * From an id to an adapter, and everything that holds for a call on any engine: places and a bounded queue, the
 * deadline, one retry after a lost connection, and the log of a source's connections.
 */
import * as Arr from "effect/Array"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Runtime from "effect/Runtime"
import * as Scope from "effect/Scope"
import { isOwned, Owner, type OwnerToken } from "./Adapter/Owner.js"
import { Adapter, type AdapterService, type AdmittedQuery, type Engine, type Statement } from "./Adapter.js"
import { CallLog } from "./CallLog.js"
import type { Dialect } from "./Dialect.js"
import * as Engines from "./Engines.js"
import { FatalError } from "./FatalError.js"
import * as Policy from "./Policy.js"
import { type AdapterFailure, QueryFailed, QueryRejected } from "./QueryError.js"
import { defaultLimits, type Limits, type PartialLimits } from "./Settings/Limits.js"
import type { SourceSettings } from "./Settings.js"
import * as Breaker from "./Sources/Breaker.js"
import * as ConnectionEvents from "./Sources/ConnectionEvents.js"
import * as CrashShield from "./Sources/CrashShield.js"
import { problemsOf } from "./Sources/Options.js"

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
  /** Its engine's public name. */
  readonly engine: string
  readonly dialect: Dialect
  readonly description: string | undefined
  readonly limits: Limits
  /** Admits a statement by the rules of its engine. */
  readonly admit: (statement: Statement) => Effect.Effect<AdmittedQuery, QueryRejected>
  /**
   * Runs `use` on the source's adapter, in its turn. Whatever the engine does, the answer comes within `timeoutMs`
   * (and the adapter's own time to stop a statement); `use` hears how much of it is left.
   */
  readonly run: <A>(
    timeoutMs: number,
    use: (adapter: AdapterService, remainingMs: number) => Effect.Effect<A, AdapterFailure>
  ) => Effect.Effect<A, AdapterFailure, CurrentCall>
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

/** A source whose settings have been checked. */
interface Definition extends Pick<Source, "id" | "description" | "limits"> {
  readonly engine: Engine | Dialect
  readonly acquire: Effect.Effect<AdapterService, never, Scope.Scope>
}

/** Statements are admitted by the grammar of the source's engine: an adapter of another one would run them unchecked. */
const sameEngine = ({ engine, id }: Definition, service: AdapterService): Effect.Effect<AdapterService> => {
  if (service.engine === engine) return Effect.succeed(service)
  const [own, said] = [service.engine, engine].map((each) => Engines.dialectOf(each).name)
  return Effect.dieMessage(
    own === said
      ? `The adapter of ${id} has another Dialect of the name ${own} than the source.`
      : `The adapter of ${id} is for ${own}; the source says ${said}.`
  )
}

const make = (definition: Definition): Effect.Effect<Source, never, Scope.Scope> =>
  Effect.gen(function* () {
    const log = yield* CallLog
    const scope = yield* Effect.scope
    const { description, engine, id, limits } = definition
    const dialect = Engines.dialectOf(engine)
    const breaker = Breaker.make(id, log, Runtime.runFork(yield* Effect.runtime<never>()))
    const owner: OwnerToken = { source: id, crashed: breaker.crashed }
    const ready = yield* Deferred.make<AdapterService>()
    const begin = yield* Effect.once(
      definition.acquire.pipe(
        Effect.flatMap((service) => sameEngine(definition, service)),
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
    const events = ConnectionEvents.make(id, dialect, log, scope)

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
      engine: dialect.name,
      dialect,
      description,
      limits,
      adapter,
      admit: (statement) => Policy.admit(engine, statement),
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

const service = (definitions: ReadonlyArray<Definition>): Effect.Effect<SourcesService, never, Scope.Scope> =>
  Effect.map(Effect.forEach(definitions, make), (all) => ({
    all,
    get: (id) => Option.fromNullable(all.find((source) => source.id === id))
  }))

/** The sources of the settings. Nothing is contacted before a first call; adapters end with the scope. */
export const fromSettings = (
  settings: ReadonlyArray<SourceSettings>
): Effect.Effect<SourcesService, never, Scope.Scope> =>
  service(settings.map((source) => ({ ...source, acquire: acquire(source) })))

// ---------------------------------------------------------------------------------------------------------------------
// Sources of an application

/** A source of an application: any adapter, ours or its own. */
export interface SourceOptions {
  /** What callers name it by: `[a-z0-9_]+`. */
  readonly id: string
  /**
   * The adapter's engine: one of ours by its name, any other as the Dialect that the adapter itself has. It says by which
   * rules statements are admitted, how their parameters are written and how the schema is read; an adapter of another
   * engine ends every call as a defect. That a source with a Dialect only reads rests on that Dialect and on the adapter.
   */
  readonly engine: Engine | Dialect
  /** What a model is told of the source. */
  readonly description?: string | undefined
  /**
   * Bounds of a call; those left out are `defaultLimits`. Sizes are bytes, times milliseconds. `maxConcurrent` calls run
   * at once, so give the adapter as many connections.
   */
  readonly limits?: Omit<PartialLimits, "connectTimeoutMs"> | undefined
  /** Built with the first call that needs it, once; released with the sources. */
  readonly adapter: Layer.Layer<Adapter>
}

/**
 * The sources of an application. Ids, Dialects and limits that do not fit end in one `FatalError` with all problems. Adapters are
 * built with the first call on them, and released with the scope.
 */
export const fromOptions = (
  options: ReadonlyArray<SourceOptions>
): Effect.Effect<SourcesService, FatalError, Scope.Scope> => {
  const problems = problemsOf(options)
  return Arr.isNonEmptyReadonlyArray(problems)
    ? Effect.fail(new FatalError({ problems }))
    : service(
        options.map(({ adapter, description, engine, id, limits }) => ({
          id,
          engine,
          description,
          limits: { ...defaultLimits, ...limits },
          acquire: Effect.map(Layer.build(adapter), Context.get(Adapter))
        }))
      )
}

/** The same as a Layer: `Sources.layer([{ id: "shop", engine: "sqlite", adapter: Sqlite.layer({ file }) }])`. */
export const layer = (options: ReadonlyArray<SourceOptions>): Layer.Layer<Sources, FatalError> =>
  Layer.scoped(Sources, fromOptions(options))

/**
 * Keeps an application alive where a database driver throws from a handler of its socket, which nobody can catch: the
 * source's calls fail as `ConnectionFailed`, `closed`, the fault is logged as `source_lost` with its stack, and a second one alike
 * within 30 s holds calls on that source back for 5 s.
 *
 * It covers our PostgreSQL and SQL Server adapters, and is a listener of `uncaughtException` for as long as the Layer. Any
 * other fault still ends the process, a tick later, unless the application listens, too; its listeners hear of drivers' faults as well, and may ask
 * {@link isDriverFault}.
 *
 * @example
 * ```ts
 * const sources = Sources.layer([{ id: "crm", engine: "postgres", adapter: crm }]).pipe(Layer.provide(Sources.crashShield))
 * ```
 */
export const crashShield: Layer.Layer<never> = Layer.scopedDiscard(CrashShield.install)

/** For an application's own listener of `uncaughtException`: whether it is called for a throw from a driver's handler. */
export const isDriverFault: () => boolean = isOwned
