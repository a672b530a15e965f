import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type { CallLogService } from "../../src/CallLog.js"
import { ConnectionFailed } from "../../src/QueryError.js"
import * as Breaker from "../../src/Sources/Breaker.js"

const silent: CallLogService = {
  call: () => Effect.void,
  event: () => Effect.void
}

const setup = () => {
  let now = 0
  const events: Array<Record<string, unknown>> = []
  const log: CallLogService = {
    ...silent,
    event: (_, event, fields) => Effect.sync(() => void events.push({ event, ...fields }))
  }
  const breaker = Breaker.make("crm", log, Effect.runFork, () => now)
  const pass = (ms: number) => {
    now += ms
  }
  return { breaker, events, pass }
}

const closed = (exit: Exit.Exit<unknown, unknown>) =>
  expect(exit).toEqual(Exit.fail(expect.objectContaining({ _tag: "ConnectionFailed", reason: "closed" })))

describe("Breaker", () => {
  it.effect("a fault fails the calls that wait, and none after it", () =>
    Effect.gen(function* () {
      const { breaker, events } = setup()
      const waiting = yield* Effect.fork(Effect.exit(breaker.guard(Effect.never)))
      yield* Effect.yieldNow()
      breaker.crashed(new Error("boom"))
      closed(yield* Fiber.join(waiting))
      expect(yield* breaker.guard(Effect.succeed(1))).toBe(1)
      expect(events).toMatchObject([{ event: "source_lost", source: "crm", breaker: "closed" }])
    })
  )

  it.effect("a second one of its kind soon after holds calls back; then one may try", () =>
    Effect.gen(function* () {
      const { breaker, pass } = setup()
      breaker.crashed(new Error("boom"))
      pass(29_000)
      breaker.crashed(new Error("boom"))
      closed(yield* Effect.exit(breaker.guard(Effect.dieMessage("must not run"))))
      pass(5000)
      // The one that tries keeps the others out.
      const trying = yield* Effect.fork(breaker.guard(Effect.never))
      yield* Effect.yieldNow()
      closed(yield* Effect.exit(breaker.guard(Effect.dieMessage("must not run"))))
      yield* Fiber.interrupt(trying)
      // A failed try leaves it open, a good one closes it.
      const failure = new ConnectionFailed({ reason: "refused", message: "no" })
      expect(yield* Effect.flip(breaker.guard(Effect.fail(failure)))).toBe(failure)
      expect(yield* breaker.guard(Effect.succeed("back"))).toBe("back")
      expect(yield* breaker.guard(Effect.succeed("and on"))).toBe("and on")
    })
  )

  it.effect("another kind, or the same long after, does not", () =>
    Effect.gen(function* () {
      const { breaker, pass } = setup()
      breaker.crashed(new Error("boom"))
      breaker.crashed(new Error("bang"))
      expect(yield* breaker.guard(Effect.succeed(1))).toBe(1)
      pass(31_000)
      breaker.crashed(new Error("bang"))
      expect(yield* breaker.guard(Effect.succeed(1))).toBe(1)
    })
  )
})
