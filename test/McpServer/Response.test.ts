import { describe, expect, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Exit from "effect/Exit"
import * as FiberId from "effect/FiberId"
import * as Option from "effect/Option"
import { categoryOf, fromExit, type ResponseOptions } from "../../src/McpServer/Response.js"
import {
  ConnectionFailed,
  ConnectionReason,
  InputReason,
  InvalidInput,
  isRetryable,
  type QueryError,
  QueryFailed,
  QueryReason,
  QueryRejected,
  RejectedReason
} from "../../src/QueryError.js"
import { type Answer, answerOf, reasons } from "../support/Answer.js"

const options: ResponseOptions = {
  correlationId: "01JZZZZZZZZZZZZZZZZZZZZZZZ",
  source: "crm",
  structuredContent: true,
  redact: (text) => text.replaceAll("hunter2", "[secret]")
}

const answer = (exit: Parameters<typeof fromExit>[0], changed: Partial<ResponseOptions> = {}): Answer => {
  const { result } = Option.getOrThrow(fromExit(exit, { ...options, ...changed }))
  return answerOf(JSON.parse(JSON.stringify(result)), changed.structuredContent)
}

const issue = { path: "sql", reason: "wrong_type" as const, expected: "a string", received: "null" }

const errors: ReadonlyArray<QueryError> = [
  ...ConnectionReason.literals.map((reason) => new ConnectionFailed({ reason, message: "m" })),
  ...QueryReason.literals.map((reason) => new QueryFailed({ reason, message: "m" })),
  ...RejectedReason.literals.map((reason) => new QueryRejected({ reason, message: "m" })),
  ...InputReason.literals.map((reason) => new InvalidInput({ reason, message: "m", issues: [issue] }))
]

describe("failures", () => {
  it("have the reasons of the contract, and no others", () =>
    expect({
      connection_failed: ConnectionReason.literals,
      query_failed: QueryReason.literals,
      query_rejected: RejectedReason.literals,
      invalid_input: InputReason.literals,
      internal_error: ["unexpected"]
    }).toEqual(reasons))

  it("repeat no more of a long statement than a reader needs", () => {
    const found = answer(
      Exit.fail(
        new QueryFailed({
          reason: "syntax",
          message: `near "a${"😀".repeat(50_000)}"`,
          hint: "h".repeat(5000)
        })
      )
    )
    expect(found).toMatchObject({ ok: false })
    const { error } = found as { error: { message: string; hint: string } }
    for (const text of [error.message, error.hint]) {
      expect(text.length).toBeLessThanOrEqual(2001)
      expect(text).toMatch(/…$/)
      expect(text).not.toMatch(/[\ud800-\udbff](?![\udc00-\udfff])/)
    }
  })

  it.each(errors.map((error) => [error._tag, error.reason, error] as const))(
    "%s %s has the contract's form",
    (_, reason, error) => {
      expect(answer(Exit.fail(error))).toMatchObject({
        ok: false,
        error: { category: categoryOf(error), reason, retryable: isRetryable(error), source: "crm" }
      })
    }
  )

  it("carry hint, engine and issues where there are some, and no cause", () => {
    const error = new QueryFailed({
      reason: "unknown_column",
      message: 'column "nme" does not exist',
      hint: "Call schema.",
      engine: { code: "42703", position: 8 },
      cause: new Error("the driver's own words")
    })
    const response = Option.getOrThrow(fromExit(Exit.fail(error), options))
    expect(JSON.parse(response.result.content[0].text)).toEqual({
      error: {
        category: "query_failed",
        reason: "unknown_column",
        message: 'column "nme" does not exist',
        hint: "Call schema.",
        retryable: false,
        source: "crm",
        correlationId: options.correlationId,
        engine: { code: "42703", position: 8 }
      }
    })
    expect(response.failure).toMatchObject({ cause: { message: "the driver's own words" } })
  })

  it("have known secrets removed", () => {
    const error = new QueryFailed({ reason: "engine_error", message: "hunter2?", hint: "not hunter2" })
    expect(answer(Exit.fail(error))).toMatchObject({ error: { message: "[secret]?", hint: "not [secret]" } })
  })
})

describe("defects", () => {
  it.each([
    ["an error", new Error("postgres://u:hunter2@h")],
    ["undefined", undefined],
    ["a text", "hunter2"]
  ])("%s is an internal error that says nothing of itself", (_, defect) => {
    const response = Option.getOrThrow(fromExit(Exit.die(defect), options))
    expect(response.failure).toEqual({ category: "internal_error", reason: "unexpected", cause: defect })
    expect(answer(Exit.die(defect))).toMatchObject({
      error: { category: "internal_error", retryable: false }
    })
    expect(response.result.content[0].text).not.toContain("hunter2")
  })

  it("an answer that JSON cannot hold is one", () => {
    expect(answer(Exit.succeed({ value: { big: 5n } }))).toMatchObject({
      error: { category: "internal_error" }
    })
  })

  it("beside an interruption is one", () => {
    const cause = Cause.parallel(Cause.interrupt(FiberId.none), Cause.die(new Error("boom")))
    expect(answer(Exit.failCause(cause))).toMatchObject({ error: { category: "internal_error" } })
  })
})

describe("answers", () => {
  it("with and without structured content", () => {
    const exit = Exit.succeed({ value: { plan: ["a"] } })
    expect(answer(exit)).toEqual({ ok: true, value: { plan: ["a"] } })
    expect(answer(exit, { structuredContent: false })).toEqual({ ok: true, value: { plan: ["a"] } })
  })

  it("a call that was interrupted has none", () =>
    expect(Option.isNone(fromExit(Exit.interrupt(FiberId.none), options))).toBe(true))
})
