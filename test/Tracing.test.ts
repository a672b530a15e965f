import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Tracer from "effect/Tracer"
import { whereRead } from "../src/Tracing.js"

describe("spans", () => {
  const made = whereRead(Effect.succeed(false), () => Effect.succeed(true))

  it.effect("are made where the application has a tracer", () =>
    Effect.gen(function* () {
      const own = yield* Effect.tracer
      const tracer = Tracer.make({
        span: (...arguments_) => own.span(...arguments_),
        context: (run) => run()
      })
      expect(yield* Effect.withTracer(made, tracer)).toBe(true)
    })
  )

  it.effect("are not made for Effect's own tracer, which drops them, also within a span", () =>
    Effect.gen(function* () {
      expect(yield* made).toBe(false)
      expect(yield* Effect.withSpan(made, "outer")).toBe(false)
    })
  )
})
