import { randomBytes } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as fc from "fast-check"
import { type CallEntry, fromSink, LogEntry, redactor } from "../src/CallLog.js"
import { ConnectionFailed } from "../src/QueryError.js"
import { LogSettings } from "../src/Settings/ConfigFile.js"

const setup = (
  settings: Partial<LogSettings> = {},
  secrets: ReadonlyArray<string> = [],
  pending: () => number = () => 0
) => {
  const lines: Array<string> = []
  const log = fromSink({ ...LogSettings.make({}), ...settings }, secrets, {
    write: (line) => lines.push(line),
    pending
  })
  return { lines, log, last: () => JSON.parse(lines.at(-1) ?? "null") }
}

const entry: Omit<CallEntry, "time" | "level" | "event"> = {
  correlationId: "01J",
  requestId: 7,
  tool: "query",
  source: "crm",
  arguments: { sql: "select 1" },
  durationMs: 3.2,
  outcome: "succeeded",
  attempts: 1,
  rowCount: 1,
  truncated: false,
  bytes: 118
}

describe("lines", () => {
  it("of a call stand in the order of the contract", () => {
    const { lines, log } = setup()
    Effect.runSync(log.call(entry))
    expect(lines).toHaveLength(1)
    expect(lines[0]?.replace(/"time":"[^"]*"/, '"time":""')).toBe(
      '{"time":"","level":"info","event":"tool_call","correlationId":"01J","requestId":7,"tool":"query","source":"crm",' +
        '"arguments":{"sql":"select 1"},"durationMs":3.2,"outcome":"succeeded","attempts":1,"rowCount":1,"truncated":false,"bytes":118}\n'
    )
  })

  it("below the level are left out", () => {
    const { lines, log } = setup({ level: "warn" })
    Effect.runSync(log.call(entry))
    log.unsafeEvent("info", "server_started")
    expect(lines).toEqual([])
    log.unsafeEvent("warn", "source_lost")
    Effect.runSync(
      log.call({ ...entry, outcome: "failed", category: "internal_error", reason: "unexpected" })
    )
    expect(lines).toHaveLength(2)
  })

  it("that nobody takes are counted", () => {
    let pending = 0
    const { last, lines, log } = setup({}, [], () => pending)
    pending = 1e9
    for (let n = 0; n < 3; n++) log.unsafeEvent("info", "server_started")
    expect(lines).toEqual([])
    pending = 0
    log.unsafeEvent("info", "server_started")
    expect(last()).toMatchObject({ droppedLines: 3 })
    log.unsafeEvent("info", "server_started")
    expect(last()).not.toHaveProperty("droppedLines")
  })

  it("decode with the log's Schema, whatever the arguments and the cause", () => {
    fc.assert(
      fc.property(fc.anything(), fc.anything(), (args, cause) => {
        const { last, lines, log } = setup()
        Effect.runSync(log.call({ ...entry, arguments: args, cause }))
        expect(lines[0]?.match(/\n/g)).toHaveLength(1)
        expect(Schema.decodeUnknownSync(LogEntry)(last()).event).toBe("tool_call")
      })
    )
  })
})

describe("causes", () => {
  const causeOf = (cause: unknown) => {
    const { last, log } = setup()
    Effect.runSync(log.call({ ...entry, outcome: "failed", cause }))
    return last().cause
  }

  it("an error with its fields, its cause and its stack", () => {
    const error = Object.assign(new Error("outer", { cause: new TypeError("inner") }), {
      code: "E1",
      detail: 5n
    })
    expect(causeOf(error)).toMatchObject({
      name: "Error",
      message: "outer",
      code: "E1",
      detail: "5",
      cause: { name: "TypeError", message: "inner" },
      stack: expect.stringContaining("CallLog.test")
    })
  })

  it("a typed failure", () => {
    const failure = new ConnectionFailed({
      reason: "refused",
      message: "no",
      cause: new Error("ECONNREFUSED")
    })
    expect(causeOf(failure)).toMatchObject({
      reason: "refused",
      cause: { message: "ECONNREFUSED" }
    })
  })

  it("circles and what is shared, each told once", () => {
    interface Knot {
      readonly to: Array<Knot>
    }
    const knots: ReadonlyArray<Knot> = Array.from({ length: 60 }, () => ({ to: [] }))
    for (const knot of knots) knot.to.push(...knots)
    expect(JSON.stringify(causeOf(knots[0])).length).toBeLessThan(200_000)
  })

  it("what JSON does not know", () => {
    expect(
      causeOf({
        big: 5n,
        fn: setup,
        sym: Symbol("s"),
        bytes: new Uint8Array(3),
        none: undefined,
        nan: Number.NaN
      })
    ).toMatchObject({ big: "5", sym: "Symbol(s)", bytes: "[3 bytes]", nan: null })
    expect(causeOf("text")).toBe("text")
  })

  it("however deep", () => {
    let deep: unknown = "end"
    for (let n = 0; n < 100_000; n++) deep = [deep]
    expect(JSON.stringify(causeOf(deep))).toContain("[deeper]")
  })
})

describe("secrets", () => {
  it("may hold half of a surrogate pair", () =>
    expect(redactor(["hunter\ud800", "plain 2"])("hunter\ud800 plain 2 plain%202")).toBe(
      "[secret] [secret] [secret]"
    ))

  const secret = `${randomBytes(6).toString("hex")}/ö "\\ä`

  it("are removed from arguments, their names, causes and messages, also as they stand in URLs", () => {
    const { lines, log } = setup({}, [secret])
    const cause = Object.assign(new Error(`password ${secret} is wrong`, { cause: { [secret]: secret } }), {
      url: `postgres://u:${encodeURIComponent(secret)}@h`
    })
    Effect.runSync(
      log.call({
        ...entry,
        arguments: { sql: `select '${secret}'`, [secret]: [secret, { deep: secret }] },
        cause
      })
    )
    log.unsafeEvent("error", "uncaught", { cause: new Error(secret), text: encodeURI(secret) })
    const text = lines.join("")
    expect(text).toContain("[secret]")
    const head = secret.slice(0, 12)
    expect(text).not.toContain(head)
  })

  it("hashed arguments are the same whether they hold a secret or its removal", () => {
    const hashed = (args: unknown) => {
      const { last, log } = setup({ arguments: "hashed" }, [secret])
      Effect.runSync(log.call({ ...entry, arguments: args }))
      return last().arguments
    }
    expect(hashed({ sql: secret })).toMatch(/^sha256:[0-9a-f]{64}$/)
    expect(hashed({ sql: secret })).toBe(hashed({ sql: "[secret]" }))
    expect(hashed({ sql: "a" })).not.toBe(hashed({ sql: "b" }))
  })

  it("no text that holds one comes out with it", () => {
    const word = fc.string({ unit: "grapheme", minLength: 3, maxLength: 12 })
    fc.assert(
      fc.property(
        fc.array(word, { minLength: 1, maxLength: 3 }),
        fc.string(),
        fc.string(),
        (secrets, before, after) => {
          // What removal leaves must not be a secret itself.
          fc.pre(!secrets.some((one) => "[secret]".includes(one)))
          const redact = redactor(secrets)
          for (const one of secrets) {
            const redacted = redact(`${before}${one}${after}`)
            expect(redacted.split("[secret]").some((part) => part.includes(one))).toBe(false)
          }
        }
      )
    )
  })

  it("of one or two characters would stand in half of all texts and are left", () =>
    expect(redactor(["ab"])("about")).toBe("about"))
})
