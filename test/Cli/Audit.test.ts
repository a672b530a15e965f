import { spawn } from "node:child_process"
import { appendFileSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Report } from "../../src/Audit/Report.js"
import { CallEntry } from "../../src/CallLog.js"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "mcp-query-audit-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

const command = ["dist/main.js", "audit"]

interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

const run = (args: ReadonlyArray<string>, input = ""): Effect.Effect<Ended> =>
  Effect.async((resume) => {
    const child = spawn(process.execPath, [...command, ...args])
    const out: Array<Buffer> = []
    const err: Array<Buffer> = []
    child.stdout.on("data", (chunk: Buffer) => out.push(chunk))
    child.stderr.on("data", (chunk: Buffer) => err.push(chunk))
    child.stdin.on("error", () => {})
    child.stdin.end(input)
    child.on("close", (code) =>
      resume(
        Effect.succeed({
          code,
          stdout: Buffer.concat(out).toString("utf8"),
          stderr: Buffer.concat(err).toString("utf8")
        })
      )
    )
    return Effect.sync(() => child.kill("SIGKILL"))
  })

const decodeReport = Schema.decodeUnknownSync(Schema.parseJson(Report), { onExcessProperty: "error" })

const reportOf = (args: ReadonlyArray<string>, input?: string) =>
  Effect.map(run(["--json", ...args], input), ({ code, stderr, stdout }) => {
    expect(stderr).toBe("")
    expect(code).toBe(0)
    return decodeReport(stdout)
  })

let serial = 0
const encode = Schema.encodeSync(CallEntry)
const call = (fields: Partial<CallEntry> = {}): string =>
  `${JSON.stringify(
    encode({
      time: "2026-11-30T10:00:00.000Z",
      level: "info",
      event: "tool_call",
      correlationId: `c${++serial}`,
      requestId: serial,
      tool: "query",
      source: "crm",
      arguments: { sql: "select 1" },
      durationMs: 1,
      outcome: "succeeded",
      attempts: 1,
      ...fields
    })
  )}\n`

const failed = (category: string, reason: string, fields: Partial<CallEntry> = {}) =>
  call({ outcome: "failed", category, reason, ...fields })

/** Control and format characters of a text. */
const steering = (text: string) => text.match(/[\p{Cc}\p{Cf}]/gu) ?? []

describe("mcp-query audit", () => {
  it.scoped("counts by tool, source and category", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "calls.jsonl")
      writeFileSync(
        file,
        [
          ...Array.from({ length: 100 }, (_, index) => call({ durationMs: index + 1 })),
          call({ attempts: 2, durationMs: 50 }),
          call({ tool: "schema", arguments: {}, source: "shop" }),
          call({ outcome: "cancelled", durationMs: 9 }),
          failed("query_failed", "syntax", { durationMs: 2 }),
          failed("query_failed", "syntax", {
            source: "shop",
            correlationId: "the-last",
            time: "2026-11-30T11:00:00Z"
          }),
          failed("connection_failed", "closed")
        ].join("")
      )
      const report = yield* reportOf([file])
      expect(report).toMatchObject({
        calls: 106,
        succeeded: 102,
        failed: 3,
        cancelled: 1,
        retried: 1,
        lines: 106
      })
      const group = (tool: string, source: string, outcome: string, category: string | null) =>
        report.groups.find(
          (candidate) =>
            candidate.tool === tool &&
            candidate.source === source &&
            candidate.outcome === outcome &&
            candidate.category === category
        )
      expect(group("query", "crm", "succeeded", null)).toMatchObject({ calls: 101, retried: 1 })
      expect(group("query", "crm", "failed", "query_failed")).toMatchObject({ calls: 1 })
      expect(group("query", "shop", "failed", "query_failed")).toMatchObject({ calls: 1 })
      expect(group("query", "crm", "cancelled", null)).toMatchObject({ calls: 1 })
      expect(group("schema", "shop", "succeeded", null)).toMatchObject({ calls: 1 })
      const latency = group("query", "crm", "succeeded", null)?.latency
      expect(latency?.max).toBe(100)
      expect(Math.abs((latency?.p50 ?? 0) - 50)).toBeLessThanOrEqual(1)
      expect(Math.abs((latency?.p95 ?? 0) - 95)).toBeLessThanOrEqual(1.5)
      expect(Math.abs((latency?.p99 ?? 0) - 99)).toBeLessThanOrEqual(1.5)
      expect(report.failures).toEqual([
        {
          category: "query_failed",
          reason: "syntax",
          calls: 2,
          sources: ["crm", "shop"],
          lastTime: "2026-11-30T11:00:00Z",
          lastCorrelationId: "the-last"
        },
        expect.objectContaining({ category: "connection_failed", reason: "closed", calls: 1 })
      ])
    })
  )

  it.scoped("names the slowest statements by their slowest call", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "calls.jsonl")
      // More statements than are kept, each slower than the one before.
      const many = Array.from({ length: 9000 }, (_, index) =>
        call({ arguments: { sql: `select ${index}` }, durationMs: index })
      )
      const twice = [4000, 20_000].map((durationMs) =>
        call({ arguments: { sql: "select slow" }, durationMs, correlationId: `slow-${durationMs}` })
      )
      writeFileSync(
        file,
        [twice[0], ...many, twice[1], call({ arguments: "sha256:abc", durationMs: 19_000 })].join("")
      )
      const { slowest } = yield* reportOf([file])
      expect(slowest.slice(0, 4).map(({ maxMs, statement }) => [statement, maxMs])).toEqual([
        ["select slow", 20_000],
        ["sha256:abc", 19_000],
        ["select 8999", 8999],
        ["select 8998", 8998]
      ])
      expect(slowest[0]).toMatchObject({ slowestCorrelationId: "slow-20000" })
    })
  )

  it.scoped("tells the lines that do not decode and why", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "calls.jsonl")
      writeFileSync(
        file,
        [
          call(),
          "\n",
          "Debugger listening on ws://127.0.0.1\n",
          '{"time":"2026-11-30T10:00:00Z","level":"info","event":"tool_call","tool":7}\n',
          '{"some":"json"}\n',
          `${JSON.stringify({ time: "2026-11-30T10:00:00Z", level: "info", event: "server_started", pid: 7 })}\n`,
          call({ time: "yesterday" }),
          call().replace('"durationMs":1', '"durationMs":1e999'),
          '{"time":"2026-11-30T10:00:00Z","lev'
        ].join("")
      )
      const { calls, events, undecodable } = yield* reportOf([file])
      expect(calls).toBe(1)
      expect(events).toMatchObject([{ event: "server_started", count: 1 }])
      expect(undecodable.lines).toBe(6)
      expect(undecodable.first.map(({ line, why }) => [line, why])).toEqual([
        [3, "not JSON"],
        [4, "correlationId: expected a string, found nothing"],
        [5, "no log entry"],
        [7, "time: expected an ISO 8601 time"],
        [8, "durationMs: expected a number of milliseconds"],
        [9, "not JSON"]
      ])
    })
  )

  it.scoped("leaves out what was before --since", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "calls.jsonl")
      const ago = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString()
      writeFileSync(
        file,
        [call({ time: ago(240) }), call({ time: ago(90) }), call({ time: ago(1) })].join("")
      )
      expect((yield* reportOf([file, "--since", "1h"])).calls).toBe(1)
      expect((yield* reportOf([file, "--since", "2h"])).calls).toBe(2)
      expect((yield* reportOf([file, "--since", ago(100)])).calls).toBe(2)
      const { code, stderr, stdout } = yield* run([file, "--since", "an hour"])
      expect({ code, stdout }).toEqual({ code: 78, stdout: "" })
      expect(stderr).toContain("--since")
    })
  )

  it.scoped("reads several files and standard input", () =>
    Effect.gen(function* () {
      const place = yield* folder
      const file = join(place, "a.jsonl")
      writeFileSync(file, call())
      const report = yield* reportOf([file, "-"], call() + call())
      expect(report).toMatchObject({ calls: 3, files: [file, "standard input"] })
      const missing = yield* run([file, join(place, "missing.jsonl")])
      expect(missing).toMatchObject({ code: 78, stdout: "" })
      expect(missing.stderr).toContain("ENOENT")
      expect(yield* run([])).toMatchObject({ code: 78, stdout: "" })
      expect(yield* run([place])).toMatchObject({ code: 78, stdout: "" })
    })
  )

  it.scoped("a log cannot steer the terminal or the page", () =>
    Effect.gen(function* () {
      const place = yield* folder
      const file = join(place, "calls.jsonl")
      const page = join(place, "report.html")
      const hostile = "select '<script>alert(1)</script>', '\u001b[31m\u001b]0;title\u0007\u202e'"
      writeFileSync(
        file,
        [
          call({ arguments: { sql: hostile }, durationMs: 5000 }),
          failed(`<img src=x>`, `"><b>`, { source: "\u001b[2J<i>", tool: "<u>" }),
          "<script>\u001b[31m\n"
        ].join("")
      )
      const { code, stdout } = yield* run([file, "--html", page])
      expect(code).toBe(0)
      expect(stdout).toContain("<script>alert(1)</script>")
      expect(steering(stdout.replaceAll("\n", ""))).toEqual([])
      const html = readFileSync(page, "utf8")
      expect(html).toContain("&lt;script&gt;alert(1)&lt;/script&gt;")
      expect(html).not.toMatch(/<(script|img|b>&|i>|u>)/)
      expect(steering(html.replaceAll("\n", ""))).toEqual([])
      // Nothing is loaded from anywhere.
      expect(html).not.toMatch(/<(?:a|iframe|image|img|link|object|script|use)\b|@import|url\(/)
    })
  )

  it.scoped("follows a file that grows and is rotated", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "calls.jsonl")
      writeFileSync(file, call())
      const child = yield* Effect.acquireRelease(
        Effect.sync(() => spawn(process.execPath, [...command, "--follow", "--json", file])),
        (process) => Effect.sync(() => process.kill("SIGKILL"))
      )
      let text = ""
      child.stdout.on("data", (chunk: Buffer) => {
        text += chunk.toString("utf8")
      })
      const reports = () =>
        text
          .split("\n")
          .slice(0, -1)
          .map((line) => decodeReport(line))
      const calls = (wanted: number) =>
        Effect.async<void>((resume) => {
          const look = () => {
            if (reports().at(-1)?.calls === wanted) resume(Effect.void)
          }
          child.stdout.on("data", look)
          look()
          return Effect.sync(() => child.stdout.off("data", look))
        })
      yield* calls(1)
      const next = call()
      appendFileSync(file, call() + next.slice(0, 40))
      yield* calls(2)
      appendFileSync(file, next.slice(40))
      yield* calls(3)
      renameSync(file, `${file}.1`)
      appendFileSync(`${file}.1`, call())
      writeFileSync(file, call() + call())
      yield* calls(6)
      writeFileSync(file, call())
      yield* calls(7)
      const closed = Effect.async<number | null>((resume) => {
        child.once("close", (code) => resume(Effect.succeed(code)))
      })
      child.kill("SIGINT")
      expect(yield* closed).toBe(0)
      expect(reports().at(-1)?.undecodable.lines).toBe(0)
    })
  )
})
