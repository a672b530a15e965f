import { describe, expect, it } from "@effect/vitest"
import { type Call, quick } from "./Calls.js"
import type { Asked } from "./Client.js"
import * as Oracle from "./Oracle.js"
import * as Random from "./Random.js"

const call: Call = quick({ id: "shop", engine: "sqlite" }, true, "nonce-1")

const asked = (more: Partial<Asked> = {}): Asked => ({
  id: 1,
  method: "tools/call",
  call,
  errorCodes: [],
  sentAt: 0,
  deadlineMs: 1000,
  wanted: 1,
  cancelledAt: undefined,
  answers: [],
  ...more
})

const conditions: Oracle.Conditions = { structuredContent: true, faulty: true, allowed: new Map() }

const value = {
  columns: ["n"],
  columnTypes: [null],
  rows: [{ n: "nonce-1" }],
  rowCount: 1,
  durationMs: 1,
  truncated: false
}
const error = {
  category: "connection_failed",
  reason: "closed",
  message: "The connection to the data source was lost.",
  retryable: true,
  source: "shop",
  correlationId: "01JDXW8R6Q3T5V7Y9ZABCDEFGH"
}

const success = (facts: object, more: object = {}) => ({
  content: [{ type: "text", text: JSON.stringify(facts) }],
  structuredContent: facts,
  ...more
})
const failure = (facts: object) => ({
  content: [{ type: "text", text: JSON.stringify({ error: facts }) }],
  isError: true
})

const violations = (result: unknown, request = asked()) =>
  Oracle.judge(request, { at: 0, message: { jsonrpc: "2.0", id: 1, result } }, conditions).violations

describe("the campaign's oracle", () => {
  it("accepts what the contract says", () => {
    expect(violations(success(value))).toEqual([])
    expect(violations(failure(error))).toEqual([])
  })

  it.each<readonly [string, unknown]>([
    ["another call's rows", success({ ...value, rows: [{ n: "nonce-2" }] })],
    ["a field that is not the contract's", success({ ...value, sql: "select 1" })],
    ["a wrong count", success({ ...value, rowCount: 2 })],
    ["truncation without a reason", success({ ...value, truncated: true })],
    [
      "text unlike the structured content",
      success(value, { structuredContent: { ...value, durationMs: 2 } })
    ],
    ["an error with structured content", { ...failure(error), structuredContent: {} }],
    ["an unknown reason", failure({ ...error, reason: "gone" })],
    ["a wrong retryable", failure({ ...error, retryable: false })],
    ["no correlation id", failure({ ...error, correlationId: "" })],
    [
      "an error that no fault explains",
      failure({ ...error, category: "query_failed", reason: "syntax", retryable: false })
    ],
    [
      "an unforeseen fault",
      failure({ ...error, category: "internal_error", reason: "unexpected", retryable: false })
    ],
    [
      "two blocks",
      {
        content: [
          { type: "text", text: "{}" },
          { type: "text", text: "{}" }
        ]
      }
    ],
    ["nothing", {}]
  ])("does not accept %s", (_, result) => {
    expect(violations(result)).not.toEqual([])
  })

  it("finds texts that chunks cut, and knows how late an answer is", () => {
    const found: Array<string> = []
    const search = Oracle.searcher(['s3cret"word'], (text) => found.push(text))
    for (const part of ["a s3c", 'ret\\"', "word b"]) search(Buffer.from(part))
    expect(found.length).toBeGreaterThan(0)
    expect(Oracle.lateMs(asked(), 2999, [])).toBeLessThan(0)
    expect(Oracle.lateMs(asked(), 3100, [])).toBe(100)
    expect(Oracle.lateMs(asked(), 3100, [{ from: 500, to: 700 }])).toBeLessThan(0)
  })

  it("decides the same for the same seed", () => {
    const draw = (seed: string) => {
      const random = Random.make(seed).fork("lane 1")
      return Array.from({ length: 20 }, () => random.int(0, 1000))
    }
    expect(draw("7")).toEqual(draw("7"))
    expect(draw("7")).not.toEqual(draw("8"))
  })
})
