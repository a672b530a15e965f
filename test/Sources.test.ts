import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Sqlite from "../src/Adapter/Sqlite.js"
import type { AdapterService } from "../src/Adapter.js"
import { CallLog, type CallLogService } from "../src/CallLog.js"
import { type AdapterFailure, ConnectionFailed, QueryFailed } from "../src/QueryError.js"
import { defaultLimits } from "../src/Settings/Limits.js"
import { CurrentCall, fromSettings, type Source } from "../src/Sources.js"
import { ask } from "./Adapter/AdapterContract.js"
import { fill, folder } from "./support/Folder.js"
import { childrenOf, eventually } from "./support/Process.js"

const file = fill(join(folder(), "shop.db"), "create table t (a)", "insert into t values (1)")

const make = (maxConcurrent = 4) =>
  Effect.gen(function* () {
    const events: Array<string> = []
    const log: CallLogService = {
      call: () => Effect.void,
      event: (_, event) => Effect.sync(() => void events.push(event))
    }
    const sources = yield* Effect.provideService(
      fromSettings([
        {
          id: "shop",
          engine: "sqlite",
          config: new Sqlite.Config({ file, maxConcurrent }),
          description: undefined,
          limits: { ...defaultLimits, maxConcurrent }
        }
      ]),
      CallLog,
      log
    )
    return { source: Option.getOrThrow(sources.get("shop")), sources, events }
  })

/** Runs `use` as a call does, and tells how often it was tried. */
const run = <A>(
  source: Source,
  use: (adapter: AdapterService, remainingMs: number) => Effect.Effect<A, AdapterFailure>,
  timeoutMs = 30_000
) =>
  Effect.gen(function* () {
    const attempts = yield* Ref.make(0)
    const outcome = yield* Effect.either(
      Effect.provideService(source.run(timeoutMs, use), CurrentCall, { attempts, awaitReader: Effect.void })
    )
    return { outcome, attempts: yield* Ref.get(attempts) }
  })

const lost = (beforeFirstRow: boolean) =>
  new ConnectionFailed({ reason: "closed", message: "lost", beforeFirstRow })

const failing = (failures: ReadonlyArray<AdapterFailure>) => {
  const left = [...failures]
  return () =>
    Effect.suspend(() => {
      const failure = left.shift()
      return failure === undefined ? Effect.succeed("rows") : Effect.fail(failure)
    })
}

describe("a source", () => {
  it.scopedLive("starts nothing before its first call", () =>
    Effect.gen(function* () {
      const { events, source, sources } = yield* make()
      expect(sources.all).toEqual([source])
      expect(Option.isNone(sources.get("nosuch"))).toBe(true)
      expect(childrenOf(process.pid)).toEqual([])
      expect(events).toEqual([])
      const { outcome } = yield* run(source, (adapter) => ask(adapter, "select a from t"))
      expect(outcome).toMatchObject({ right: { rows: [[1]] } })
      expect(events).toEqual(["source_connected"])
    })
  )
})

describe("a retry", () => {
  it.scopedLive.each<{
    readonly what: string
    readonly failures: ReadonlyArray<AdapterFailure>
    readonly tag: string
    readonly attempts: number
  }>([
    { what: "a connection lost before the first row", failures: [lost(true)], tag: "Right", attempts: 2 },
    { what: "the same twice", failures: [lost(true), lost(true)], tag: "Left", attempts: 2 },
    { what: "a connection lost after the first row", failures: [lost(false)], tag: "Left", attempts: 1 },
    {
      what: "a connection that was never made",
      failures: [new ConnectionFailed({ reason: "refused", message: "no", beforeFirstRow: true })],
      tag: "Left",
      attempts: 1
    },
    {
      what: "a refusal of the engine",
      failures: [new QueryFailed({ reason: "lock_timeout", message: "locked" })],
      tag: "Left",
      attempts: 1
    }
  ])("after a failure", ({ attempts, failures, tag, what }) =>
    Effect.gen(function* () {
      const { source } = yield* make()
      const seen = yield* run(source, failing(failures))
      expect({ what, tag: seen.outcome._tag, attempts: seen.attempts }).toEqual({ what, tag, attempts })
    })
  )

  it.scopedLive("and what the log hears of the connection", () =>
    Effect.gen(function* () {
      const { events, source } = yield* make()
      yield* run(source, failing([]))
      yield* run(source, failing([lost(false)]))
      yield* run(source, failing([lost(false)]))
      yield* run(source, failing([new QueryFailed({ reason: "syntax", message: "no" })]))
      expect(events).toEqual(["source_connected", "source_lost", "source_recovered"])
    })
  )
})

describe("the deadline", () => {
  it.scopedLive("answers although the adapter takes its time, whose place stays taken", () =>
    Effect.gen(function* () {
      const { source } = yield* make(1)
      const gate = yield* Deferred.make<void>()
      yield* run(source, failing([]))
      const { outcome } = yield* run(source, () => Effect.uninterruptible(Deferred.await(gate)), 50)
      expect(outcome).toMatchObject({ left: { _tag: "QueryFailed", reason: "timeout" } })
      let began = false
      const next = yield* Effect.fork(
        run(source, () =>
          Effect.sync(() => {
            began = true
          })
        )
      )
      yield* Effect.yieldNow()
      expect(began).toBe(false)
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(next)
      expect(began).toBe(true)
    })
  )

  it.scopedLive("holds for the wait for a place, too", () =>
    Effect.gen(function* () {
      const { source } = yield* make(1)
      const busy = yield* Effect.fork(run(source, () => Effect.never))
      yield* Effect.yieldNow()
      const { outcome } = yield* run(source, failing([]), 50)
      expect(outcome).toMatchObject({ left: { reason: "timeout" } })
      yield* Fiber.interrupt(busy)
      expect((yield* run(source, failing([]))).outcome._tag).toBe("Right")
    })
  )

  it.scopedLive("an adapter hears how much of it is left", () =>
    Effect.gen(function* () {
      const { source } = yield* make()
      const { outcome } = yield* run(source, (_, remainingMs) => Effect.succeed(remainingMs), 5000)
      expect(outcome._tag === "Right" ? outcome.right : 0).toBeGreaterThan(0)
      expect(outcome._tag === "Right" ? outcome.right : 9999).toBeLessThanOrEqual(5000)
    })
  )
})

describe("the queue", () => {
  it.scopedLive("takes turns, up to maxConcurrent at once", () =>
    Effect.gen(function* () {
      const { source } = yield* make(3)
      let running = 0
      let most = 0
      yield* Effect.forEach(
        Array.from({ length: 30 }),
        () =>
          run(source, () =>
            Effect.acquireUseRelease(
              Effect.sync(() => {
                most = Math.max(most, ++running)
              }),
              () => Effect.yieldNow(),
              () => Effect.sync(() => running--)
            )
          ),
        { concurrency: "unbounded" }
      )
      expect(most).toBe(3)
    })
  )

  it.scopedLive("is bounded: what comes beyond is turned away at once", () =>
    Effect.gen(function* () {
      const { source } = yield* make(2)
      const turnedAway: Array<number> = []
      const waiting = yield* Effect.fork(
        Effect.forEach(
          Array.from({ length: 300 }),
          () =>
            Effect.map(
              run(source, () => Effect.never),
              ({ attempts, outcome }) => {
                expect(outcome).toMatchObject({ left: { _tag: "QueryRejected", reason: "overloaded" } })
                turnedAway.push(attempts)
              }
            ),
          { concurrency: "unbounded" }
        )
      )
      yield* Effect.promise(() => eventually("some are turned away", () => turnedAway.length >= 42))
      // Two run and 256 wait; the others were never sent.
      expect(turnedAway).toEqual(Array.from({ length: 42 }, () => 0))
      yield* Fiber.interrupt(waiting)
      expect((yield* run(source, failing([]))).outcome._tag).toBe("Right")
    })
  )
})
