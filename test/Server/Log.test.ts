/** The call log: one line a call, what stands in it, and what does not. */
import { createHash, randomBytes } from "node:crypto"
import { readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Schema from "effect/Schema"
import { describe, expect, it } from "vitest"
import { LogEntry } from "../../src/CallLog.js"
import { errorOf, valueOf } from "../support/Answer.js"
import { fill, folder, isBeingRead } from "../support/Folder.js"
import { childrenOf, eventually, killAndWait } from "../support/Process.js"
import { Program } from "../support/Program.js"

const place = folder()
const shop = fill(join(place, "shop.db"), "create table t (a)", "insert into t values (1), (2)")
const runaway =
  "with recursive c(i) as (select a from t union all select i + 1 from c) select count(*) from c"

const config = (name: string, log: object): ReadonlyArray<string> => {
  const file = join(place, `${name}.json`)
  writeFileSync(file, JSON.stringify({ sources: { shop: { engine: "sqlite", file: "shop.db" } }, log }))
  return ["--config", file]
}

const calls = (program: Program) => program.log.filter(({ event }) => event === "tool_call")
const nextCall = async (program: Program, count: number) =>
  eventually(`${count} lines of calls`, () => calls(program)[count - 1])

const end = async (program: Program) => {
  program.closeStdin()
  expect(await program.ended).toEqual({ code: 0, signal: null })
}

describe("a line a call", () => {
  it("that succeeded", async () => {
    const program = await new Program([shop]).initialize()
    const args = { sql: "select a from t where a > ?", params: [0], maxRows: 1 }
    const id = program.beginQuery(args)
    const { result = {} } = await program.answer(id)
    const [{ text }] = result["content"] as readonly [{ text: string }]
    expect(await nextCall(program, 1)).toEqual({
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      level: "info",
      event: "tool_call",
      correlationId: expect.stringMatching(/^[0-9A-Z]{26}$/),
      requestId: id,
      tool: "query",
      source: "shop",
      arguments: args,
      durationMs: expect.any(Number),
      outcome: "succeeded",
      attempts: 1,
      rowCount: 1,
      truncated: true,
      bytes: Buffer.byteLength(text)
    })
    await end(program)
    expect(calls(program)).toHaveLength(1)
  })

  it("that failed, with the answer's correlation id and what the driver said", async () => {
    const program = await new Program([shop, `gone=${join(place, "gone.db")}`]).initialize()
    const failing = [
      [{ sql: "select nme from t", source: "shop" }, "query_failed", "unknown_column", /no such column: nme/],
      [{ sql: "delete from t", source: "shop" }, "query_rejected", "read_only", undefined],
      [{ sql: "select 1", source: "gone" }, "connection_failed", "file_not_found", /ENOENT/],
      [{ sql: 5, source: "shop" }, "invalid_input", "wrong_type", undefined],
      [{ sql: "select 1", source: "nosuch" }, "invalid_input", "unknown_source", undefined]
    ] as const
    for (const [index, [args, category, reason, cause]] of failing.entries()) {
      const error = errorOf(await program.query(args))
      const line = await nextCall(program, index + 1)
      expect(line).toMatchObject({
        correlationId: error.correlationId,
        tool: "query",
        arguments: args,
        outcome: "failed",
        category,
        reason
      })
      if (cause !== undefined) expect(JSON.stringify(line["cause"])).toMatch(cause)
      expect(error).toMatchObject({ category, reason })
    }
    await end(program)
  })

  it("that was cancelled, and one that was tried again", async () => {
    const program = await new Program([shop]).initialize()
    const cancelled = program.beginQuery({ sql: runaway })
    await eventually("the statement runs", () => isBeingRead(shop))
    program.notify("notifications/cancelled", { requestId: cancelled })
    expect(await nextCall(program, 1)).toMatchObject({
      requestId: cancelled,
      outcome: "cancelled",
      attempts: 1
    })

    const again = program.beginQuery({ sql: runaway, timeoutMs: 20_000 })
    await eventually("the statement runs", () => isBeingRead(shop))
    await killAndWait(childrenOf(program.pid))
    await eventually("it runs again", () => isBeingRead(shop))
    program.notify("notifications/cancelled", { requestId: again })
    expect(await nextCall(program, 2)).toMatchObject({ requestId: again, outcome: "cancelled", attempts: 2 })
    await end(program)
  })

  it("and every line decodes with the log's own Schema", async () => {
    const program = await new Program([shop, `gone=${join(place, "gone.db")}`]).initialize()
    await program.query({ sql: "select 1", source: "shop" })
    await program.query({ sql: "select 1", source: "gone" })
    await program.query({ sql: "select nme", source: "shop" })
    await end(program)
    const events = program.log.map((line) => Schema.decodeUnknownSync(LogEntry)(line).event)
    expect(events).toEqual([
      "server_started",
      "source_connected",
      "tool_call",
      "source_lost",
      "tool_call",
      "tool_call",
      "server_stopped"
    ])
  })
})

describe("settings", () => {
  const mark = randomBytes(8).toString("hex")
  const args = { sql: `select '${mark}' as a` }

  it("arguments hashed: the same for the same arguments, and nothing of them", async () => {
    const program = await new Program(config("hashed", { arguments: "hashed" })).initialize()
    for (const _ of [1, 2]) await program.query(args)
    await program.query({ sql: "select 2" })
    await end(program)
    const [first, second, third] = calls(program).map((line) => line["arguments"])
    expect(first).toBe(`sha256:${createHash("sha256").update(JSON.stringify(args)).digest("hex")}`)
    expect(second).toBe(first)
    expect(third).not.toBe(first)
    expect(program.stderr).not.toContain(mark)
  })

  it("no arguments", async () => {
    const program = await new Program(config("none", { arguments: "none" })).initialize()
    await program.query(args)
    await end(program)
    expect(calls(program)).toHaveLength(1)
    expect(calls(program)[0]).not.toHaveProperty("arguments")
    expect(program.stderr).not.toContain(mark)
  })

  it("a file, appended to, beside the config file and only the owner's", async () => {
    for (const _ of ["first", "second"]) {
      const program = await new Program(config("file", { file: "calls.jsonl" })).initialize()
      valueOf(await program.query(args))
      await end(program)
      expect(program.stderr).toBe("")
    }
    const file = join(place, "calls.jsonl")
    const lines = readFileSync(file, "utf8").trimEnd().split("\n")
    const events = lines.map((line) => Schema.decodeUnknownSync(LogEntry)(JSON.parse(line)).event)
    expect(events.filter((event) => event === "tool_call")).toHaveLength(2)
    expect(events.filter((event) => event === "server_started")).toHaveLength(2)
    expect(statSync(file).mode & 0o077).toBe(0)
  })
})

it("a log that nobody reads does not hold up the calls", async () => {
  const program = await new Program([shop]).initialize()
  program.process.stderr?.pause()
  const sql = `select 1 as a -- ${"x".repeat(50_000)}`
  // More than any pipe holds.
  for (let n = 0; n < 60; n++) valueOf(await program.query({ sql }))
  program.process.stderr?.resume()
  await end(program)
})
