import { afterEach, describe, expect, it, vi } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import { check } from "../../src/Cli/Check.js"
import { exitCode } from "../../src/FatalError.js"
import { load } from "../../src/Settings.js"
import { start } from "../Adapter/SqlServer/TdsServer.js"

afterEach(() => void vi.restoreAllMocks())

describe("check", () => {
  it.scoped("ends, also where a source stalls after its login", () =>
    Effect.gen(function* () {
      const write = vi.spyOn(process.stdout, "write").mockReturnValue(true)
      const asked = yield* Deferred.make<void>()
      const stall = () => Deferred.unsafeDone(asked, Effect.void)
      const { port } = yield* start({ statement: stall })
      const url = `mssql://reader:secret@127.0.0.1:${port}/db?encrypt=false`
      const settings = yield* load({ sources: [], config: undefined, environment: { DATABASE_URL: url } })
      const fiber = yield* Effect.fork(check(settings, { json: true }))
      yield* Deferred.await(asked)
      yield* TestClock.adjust("1 minute")
      expect(yield* Fiber.join(fiber)).toBe(exitCode.failed)
      expect(JSON.parse(String(write.mock.calls[0]?.[0]))).toMatchObject({
        sources: [{ id: "db", failure: { reason: "timeout" } }]
      })
    })
  )
})
