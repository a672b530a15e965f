/** An audit's report as text for a terminal. */
import * as Caption from "../Audit/Caption.js"
import * as Format from "../Audit/Format.js"
import type { Latency, Report } from "../Audit/Report.js"
import { textTable } from "./TextTable.js"

export interface TextOptions {
  /** Columns of the terminal; undefined where the text goes elsewhere and is not cut. */
  readonly columns: number | undefined
  /** Marks a heading, where the terminal can. */
  readonly heading: (text: string) => string
}

const quantiles = ["p50", "p95", "p99", "max"] as const
const latencyCells = (latency: Latency | null) => quantiles.map((name) => latency?.[name] ?? null)

const overview = (report: Report): string => {
  const { bytes, calls, cancelled, failed, latency, lines, retried } = report
  const counts = [
    `${Format.count(calls)} calls`,
    `${Format.count(failed)} failed (${Format.percent(failed, calls)})`,
    `${Format.count(cancelled)} cancelled`,
    `${Format.count(retried)} retried`
  ].join(", ")
  return [
    Format.plainLine(Caption.files(report)),
    `${Format.count(lines)} lines, ${Format.bytes(bytes)}, ${Caption.period(report)}`,
    counts,
    ...(latency === null
      ? []
      : [quantiles.map((name) => `${name} ${Format.duration(latency[name])}`).join(", ")]),
    ...(report.droppedLines > 0
      ? [`${Format.count(report.droppedLines)} lines were dropped by the server, because nobody read its log`]
      : [])
  ].join("\n")
}

/** A statement takes what the other columns leave. */
const statementWidth = (columns: number | undefined, others: number) =>
  columns === undefined ? 120 : Math.max(24, columns - others)

export const render = (report: Report, { columns, heading }: TextOptions): string => {
  const { events, failures, groups, slowest, undecodable } = report
  const line = (text: string, most = 60) => Format.clip(Format.plainLine(text), most)
  const section = (
    title: string,
    headings: ReadonlyArray<string>,
    rows: ReadonlyArray<ReadonlyArray<unknown>>
  ) => (rows.length === 0 ? [] : [`${heading(title)}\n${textTable(headings, rows)}`])
  return [
    overview(report),
    ...section(
      "Calls (times in ms)",
      ["tool", "source", "outcome", "calls", "retried", ...quantiles],
      groups.map(({ calls, category, latency, outcome, retried, source, tool }) => [
        line(tool, 30),
        source === null ? null : line(source, 30),
        category === null ? outcome : `${outcome}: ${line(category, 30)}`,
        calls,
        retried,
        ...latencyCells(latency)
      ])
    ),
    ...section(
      "Failures",
      ["category", "reason", "calls", "sources", "last correlation id"],
      failures.map(({ calls, category, lastCorrelationId, reason, sources }) => [
        line(category, 30),
        line(reason, 30),
        calls,
        sources.length === 0 ? null : line(sources.join(", "), 40),
        line(lastCorrelationId, 30)
      ])
    ),
    ...section(
      "Slowest statements (times in ms)",
      ["slowest", "mean", "calls", "failed", "source", "correlation id", "statement"],
      slowest.map((statement) => [
        Math.round(statement.maxMs * 10) / 10,
        statement.meanMs,
        statement.callsAreExact ? statement.calls : `≥ ${statement.calls}`,
        statement.failed,
        statement.source === null ? null : line(statement.source, 20),
        line(statement.slowestCorrelationId, 26),
        line(statement.statement, statementWidth(columns, 76))
      ])
    ),
    ...section(
      "Other events",
      ["event", "source", "count", "last"],
      events.map(({ count, event, lastTime, source }) => [
        line(event, 40),
        source === null ? null : line(source, 30),
        count,
        Format.moment(lastTime)
      ])
    ),
    ...section(
      `Lines that do not decode: ${Format.count(undecodable.lines)}${undecodable.lines > undecodable.first.length ? `, the first ${undecodable.first.length}` : ""}`,
      ["where", "why", "begins with"],
      undecodable.first.map(({ file, line: number, text, why }) => [
        `${line(file, 60)}:${number}`,
        line(why, 80),
        line(text, 60)
      ])
    )
  ].join("\n\n")
}
