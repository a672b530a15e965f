/**
 * Resources that are made when needed, used by one fiber at a time, and closed when nobody has used them for a while.
 * Effect's own Pool loses a waiter where a resource comes back while the pool is about to grow: that call never ends.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

export interface ResourcePoolOptions<A, E> {
  /** Makes a resource, in the fiber that needs it. What an interruption leaves behind is its own concern. */
  readonly acquire: Effect.Effect<A, E>
  readonly close: (resource: A) => Effect.Effect<void>
  /** Asked before a resource is handed out and when it comes back; an unfit one is closed. */
  readonly isFit: (resource: A) => boolean
  /** How many may be in use at once. */
  readonly max: number
  /** How many are kept ready beside those in use, as long as there are no more than `max` in all. */
  readonly ready: number
  /** What nobody used for this long is closed, but for those kept ready. */
  readonly idleTime: Duration.DurationInput
}

export interface ResourcePool<A, E> {
  /** The resource used last, or a new one. It comes back when the scope is closed. */
  readonly get: Effect.Effect<A, E, Scope.Scope>
}

interface Idle<A> {
  readonly resource: A
  readonly since: number
}

export const make = <A, E>(
  options: ResourcePoolOptions<A, E>
): Effect.Effect<ResourcePool<A, E>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { acquire, close, idleTime, isFit, max, ready } = options
    const scope = yield* Effect.scope
    const places = yield* Effect.makeSemaphore(max)
    const inUse = new Set<A>()
    /** The one used last is last. */
    let idle: ReadonlyArray<Idle<A>> = []
    let isClosed = false

    const keep = (resource: A) =>
      Effect.map(Clock.currentTimeMillis, (since) => {
        idle = [...idle, { resource, since }]
      })

    const closeAll = (resources: Iterable<A>) => Effect.forEach(resources, close, { discard: true })

    /** Closes the idle ones that `isWanted` does not name. */
    const sift = (isWanted: (one: Idle<A>, index: number) => boolean) =>
      Effect.suspend(() => {
        const unwanted = idle.filter((one, index) => !isWanted(one, index))
        idle = idle.filter((one) => !unwanted.includes(one))
        return closeAll(unwanted.map(({ resource }) => resource))
      })

    yield* Effect.addFinalizer(() =>
      Effect.suspend(() => {
        isClosed = true
        return Effect.zipRight(
          sift(() => false),
          closeAll([...inUse])
        )
      })
    )

    const refill: Effect.Effect<void> = Effect.suspend(() =>
      isClosed || idle.length >= ready || idle.length + inUse.size >= max
        ? Effect.void
        : Effect.zipRight(Effect.flatMap(acquire, keep), refill)
    ).pipe(
      Effect.uninterruptible,
      // The call that needs one has the failure.
      Effect.catchAll(() => Effect.void)
    )

    const sweep = Effect.flatMap(Clock.currentTimeMillis, (now) =>
      sift(
        ({ resource, since }, index) =>
          isFit(resource) && (index >= idle.length - ready || now - since < Duration.toMillis(idleTime))
      )
    )
    yield* Effect.forkIn(
      Effect.forever(Effect.delay(Effect.uninterruptible(Effect.zipRight(sweep, refill)), idleTime)),
      scope
    )
    yield* Effect.forkIn(refill, scope)

    const takeIdle = Effect.zipRight(
      sift(({ resource }) => isFit(resource)),
      Effect.sync(() => {
        const last = idle.at(-1)
        idle = idle.slice(0, -1)
        return last?.resource
      })
    )

    const give = (resource: A) =>
      Effect.suspend(() => {
        inUse.delete(resource)
        return isFit(resource) && !isClosed ? keep(resource) : close(resource)
      })

    return {
      get: Effect.uninterruptibleMask((restore) =>
        Effect.gen(function* () {
          yield* restore(places.take(1))
          yield* Effect.addFinalizer(() => places.release(1))
          if (isClosed) return yield* Effect.interrupt
          const resource = (yield* takeIdle) ?? (yield* restore(acquire))
          inUse.add(resource)
          yield* Effect.addFinalizer(() => give(resource))
          if (ready > 0) yield* Effect.forkIn(refill, scope)
          return resource
        })
      )
    }
  })
