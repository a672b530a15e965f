import { describe, expect, it } from "@effect/vitest"
import * as Either from "effect/Either"
import fc from "fast-check"
import * as Chart from "../../src/Audit/Chart.js"
import * as Durations from "../../src/Audit/Durations.js"
import * as Intervals from "../../src/Audit/Intervals.js"
import * as LogLine from "../../src/Audit/LogLine.js"
import * as Since from "../../src/Audit/Since.js"
import * as Summary from "../../src/Audit/Summary.js"
import { fromSink } from "../../src/CallLog.js"

describe("Durations", () => {
  it("percentiles are within 1 % of the nearest rank's, the maximum is exact", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 36_000_000 }), { minLength: 1, maxLength: 400 }),
        (tenths) => {
          const all = tenths.map((value) => value / 10).sort((a, b) => a - b)
          const durations = Durations.make()
          for (const ms of all) durations.add(ms)
          const latency = durations.latency()
          if (latency === null) throw new Error("There are no figures.")
          expect(latency.max).toBe(all.at(-1))
          for (const [name, quantile] of [
            ["p50", 0.5],
            ["p95", 0.95],
            ["p99", 0.99]
          ] as const) {
            const exact = all[Math.ceil(quantile * all.length) - 1] ?? Number.NaN
            expect(Math.abs(latency[name] - exact)).toBeLessThanOrEqual(exact * 0.01 + 0.05)
          }
        }
      )
    )
  })

  it("takes any duration in bounded memory", () => {
    const durations = Durations.make()
    for (let exponent = -300; exponent < 300; exponent++) durations.add(10 ** exponent)
    durations.add(0)
    expect(durations.latency()?.max).toBe(1e299)
    expect(Durations.make().latency()).toBeNull()
  })
})

describe("Intervals", () => {
  const moments = fc.oneof(
    fc.integer({ min: 0, max: 4e12 }),
    fc.integer({ min: -8.64e15, max: 8.64e15 }),
    fc.constantFrom(-8.64e15, -1, 8.64e15)
  )

  it("grow wider and lose no call", () => {
    fc.assert(
      fc.property(fc.array(moments, { minLength: 1, maxLength: 2000 }), (times) => {
        const intervals = Intervals.make()
        for (const [index, time] of times.entries())
          intervals.add(time, 1, { failed: index % 3 === 0, retried: index % 5 === 0 })
        const list = intervals.list()
        expect(Chart.overTime(list)).toContain("<svg")
        const sum = (name: "calls" | "failed" | "retried") =>
          list.reduce((all, interval) => all + interval[name], 0)
        expect(list.length).toBeLessThanOrEqual(240)
        expect(sum("calls")).toBe(times.length)
        expect(sum("failed")).toBe(Math.ceil(times.length / 3))
        expect(sum("retried")).toBe(Math.ceil(times.length / 5))
        for (const time of times)
          expect(
            list.some(({ from, widthMs }) => Date.parse(from) <= time && time < Date.parse(from) + widthMs)
          ).toBe(true)
      }),
      { numRuns: 50 }
    )
  })
})

describe("--since", () => {
  const now = Date.parse("2026-11-30T12:00:00Z")
  it.each([
    ["90s", now - 90_000],
    ["15m", now - 900_000],
    ["1.5h", now - 5_400_000],
    ["7D", now - 604_800_000],
    ["2w", now - 1_209_600_000],
    ["2026-11-30T10:00:00Z", now - 7_200_000],
    ["2026-11-30T12:00+02:00", now - 7_200_000],
    ["2026-11-29", Date.parse("2026-11-29T00:00")]
  ])("%s", (text, moment) => {
    expect(Since.parse(text, now)).toEqual(Either.right(moment))
  })

  it.each(["", "1", "h", "1 hour", "-1h", "yesterday", "2026-13-01", "10:00", "9999999999w"])(
    "not %j",
    (text) => {
      expect(Either.isLeft(Since.parse(text, now))).toBe(true)
    }
  )
})

describe("Summary", () => {
  it("is bounded whatever names a log holds", () => {
    const summary = Summary.make({ since: undefined })
    const sink: Array<string> = []
    const log = fromSink({ level: "info", file: null, arguments: "full" }, [], {
      write: (line) => sink.push(line),
      pending: () => 0
    })
    for (let index = 0; index < 5000; index++) {
      log.unsafeEvent("info", "message", { source: `source ${index}` })
      sink.push(
        JSON.stringify({
          time: new Date(index).toISOString(),
          level: "info",
          event: "tool_call",
          correlationId: String(index),
          requestId: index,
          tool: "t".repeat(index),
          durationMs: index,
          outcome: "failed",
          attempts: 1,
          category: `c${index}`,
          reason: "r".repeat(1000)
        })
      )
    }
    for (const line of sink) {
      const parsed = LogLine.parse(line)
      if (parsed === undefined || Either.isLeft(parsed)) throw new Error(line)
      summary.entry(parsed.right.entry, parsed.right.time)
    }
    const report = summary.report([])
    expect(report.calls).toBe(5000)
    expect(report.groups.length).toBeLessThanOrEqual(2001)
    expect(report.groups.reduce((sum, { calls }) => sum + calls, 0)).toBe(5000)
    expect(report.failures.reduce((sum, { calls }) => sum + calls, 0)).toBe(5000)
    expect(report.events.reduce((sum, { count }) => sum + count, 0)).toBe(5000)
    expect(JSON.stringify(report).length).toBeLessThan(3e6)
  })

  it("counts the lines that the server dropped", () => {
    const summary = Summary.make({ since: undefined })
    const sink: Array<string> = []
    let pending = 0
    const log = fromSink({ level: "info", file: null, arguments: "full" }, [], {
      write: (line) => sink.push(line),
      pending: () => pending
    })
    log.unsafeEvent("info", "message", { text: "kept" })
    pending = 2 ** 30
    for (let index = 0; index < 3; index++) log.unsafeEvent("info", "message", { text: "lost" })
    pending = 0
    log.unsafeEvent("info", "message", { text: "kept" })
    for (const line of sink) {
      const parsed = LogLine.parse(line)
      if (parsed !== undefined && Either.isRight(parsed)) summary.entry(parsed.right.entry, parsed.right.time)
    }
    expect(summary.report([])).toMatchObject({ droppedLines: 3, events: [{ event: "message", count: 2 }] })
  })
})
