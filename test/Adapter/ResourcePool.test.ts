import { describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/TestClock"
import * as ResourcePool from "../../src/Adapter/ResourcePool.js"

interface Resource {
  readonly id: number
  isFit: boolean
  isClosed: boolean
}

const harness = (options: Partial<ResourcePool.ResourcePoolOptions<Resource, string>> = {}) =>
  Effect.gen(function* () {
    const made: Array<Resource> = []
    const create = Effect.sync(() => {
      const resource = { id: made.length, isFit: true, isClosed: false }
      made.push(resource)
      return resource
    })
    const pool = yield* ResourcePool.make<Resource, string>({
      acquire: create,
      close: (resource) =>
        Effect.sync(() => {
          resource.isClosed = true
        }),
      isFit: (resource) => resource.isFit && !resource.isClosed,
      max: 3,
      ready: 0,
      idleTime: "1 minute",
      ...options
    })
    /** Takes one and keeps it until the returned effect runs. */
    const take = Effect.gen(function* () {
      const scope = yield* Scope.make()
      const resource = yield* Scope.extend(pool.get, scope)
      return { resource, give: Scope.close(scope, Exit.void) }
    })
    const open = () => made.filter(({ isClosed }) => !isClosed).map(({ id }) => id)
    return { create, made, open, pool, take, use: Effect.map(Effect.scoped(pool.get), ({ id }) => id) }
  })

describe("a pool of resources", () => {
  it.scoped("makes one where none is free, and hands out the one used last", () =>
    Effect.gen(function* () {
      const { open, take, use } = yield* harness()
      expect(open()).toEqual([])
      const [a, b] = [yield* take, yield* take]
      expect(open()).toEqual([0, 1])
      yield* b.give
      yield* a.give
      expect(yield* use).toBe(a.resource.id)
      expect(open()).toEqual([0, 1])
    })
  )

  it.scoped("answers a call that comes just before another's resource is back", () =>
    Effect.gen(function* () {
      const { take, use } = yield* harness()
      const { give } = yield* take
      yield* Effect.fork(give)
      expect(yield* use).toBe(1)
    })
  )

  it.scoped("lets calls wait where as many as may be are in use", () =>
    Effect.gen(function* () {
      const { open, take, use } = yield* harness({ max: 2 })
      const taken = [yield* take, yield* take]
      const waiting = yield* Effect.forkAll([use, use, use])
      yield* Effect.yieldNow()
      expect(open()).toEqual([0, 1])
      yield* Effect.forEach(taken, ({ give }) => give)
      yield* Fiber.join(waiting)
      expect(open()).toEqual([0, 1])
    })
  )

  it.scoped("closes what is unfit, when it comes back and when it would be handed out", () =>
    Effect.gen(function* () {
      const { made, open, take, use } = yield* harness()
      const { give, resource } = yield* take
      resource.isFit = false
      yield* give
      expect(open()).toEqual([])
      expect(yield* use).toBe(1)
      for (const one of made) one.isFit = false
      expect(yield* use).toBe(2)
      expect(open()).toEqual([2])
    })
  )

  it.scoped("gives a call its own failure, and its place to the next", () =>
    Effect.gen(function* () {
      const { pool } = yield* harness({ acquire: Effect.fail("refused"), max: 1 })
      for (let i = 0; i < 3; i++) expect(yield* Effect.flip(Effect.scoped(pool.get))).toBe("refused")
    })
  )

  it.scoped("gives the place of an interrupted call to the next", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<Resource>()
      const { pool } = yield* harness({ acquire: Deferred.await(gate), max: 1 })
      const first = yield* Effect.fork(Effect.scoped(pool.get))
      yield* Effect.yieldNow()
      const second = yield* Effect.fork(Effect.scoped(pool.get))
      yield* Effect.yieldNow()
      yield* Fiber.interrupt(first)
      yield* Deferred.succeed(gate, { id: 7, isFit: true, isClosed: false })
      expect((yield* Fiber.join(second)).id).toBe(7)
    })
  )

  it.scoped("keeps some ready beside those in use", () =>
    Effect.gen(function* () {
      const { made, open, take } = yield* harness({ ready: 1 })
      yield* Effect.yieldNow()
      expect(open()).toEqual([0])
      const a = yield* take
      yield* Effect.yieldNow()
      expect(open()).toEqual([0, 1])
      yield* take
      yield* Effect.yieldNow()
      yield* take
      yield* Effect.yieldNow()
      expect(made.length).toBe(3)
      a.resource.isFit = false
      yield* a.give
      expect(open()).toEqual([1, 2])
    })
  )

  for (const { ready, left } of [
    { ready: 0, left: [] },
    { ready: 1, left: [2] }
  ])
    it.scoped(`closes what nobody used for a while, but for ${ready} kept ready`, () =>
      Effect.gen(function* () {
        const { open, take, use } = yield* harness({ ready })
        const taken = [yield* take, yield* take, yield* take]
        yield* Effect.forEach(taken, ({ give }) => give)
        yield* TestClock.adjust("50 seconds")
        expect(open()).toEqual([0, 1, 2])
        expect(yield* use).toBe(2)
        yield* TestClock.adjust("30 seconds")
        expect(open()).toEqual([2])
        yield* TestClock.adjust("1 hour")
        expect(open()).toEqual(left)
      })
    )

  it.effect("closes all with its scope, those in use too", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { open, take, use } = yield* Scope.extend(harness(), scope)
      const { give } = yield* take
      const other = yield* take
      yield* other.give
      yield* Scope.close(scope, Exit.void)
      expect(open()).toEqual([])
      yield* give
      expect(Exit.isInterrupted(yield* Effect.exit(use))).toBe(true)
    })
  )
})
