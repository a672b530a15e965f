/** A report as one HTML page that needs nothing else: no script, no network. */
import * as Caption from "./Caption.js"
import * as Chart from "./Chart.js"
import * as Format from "./Format.js"
import type { Group, Latency, Report, Statement } from "./Report.js"

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;"
}

/** Everything that comes from a log passes here. */
const escape = (text: string) =>
  text
    .replace(/[&<>"']/g, (character) => entities[character] ?? character)
    .replace(/[\p{Cc}\p{Cf}\p{Cs}]/gu, (character) => (/[\n\t]/.test(character) ? character : "\ufffd"))

const style = `
:root{color-scheme:light dark;--page:#f6f7f8;--card:#fff;--ink:#1b1f24;--muted:#667079;--line:#e4e7ea;
--p50:#2f7fd1;--p95:#d98a1b;--p99:#8a55c8;--calls:#b7c5d3;--failed:#c63d61;--area:rgba(47,127,209,.09);
--connection_failed:#7b5bc4;--query_failed:#c63d61;--query_rejected:#d98a1b;--invalid_input:#2f7fd1;--internal_error:#1b1f24;--slow:#2f7fd1}
@media (prefers-color-scheme:dark){:root{--page:#121517;--card:#1a1e22;--ink:#e6e9ec;--muted:#98a2ab;--line:#2b3238;
--p50:#62aef5;--p95:#f0b455;--p99:#b590f5;--calls:#43505d;--failed:#f27794;--area:rgba(98,174,245,.1);
--connection_failed:#a78bf0;--query_failed:#f27794;--query_rejected:#f0b455;--invalid_input:#62aef5;--internal_error:#e6e9ec;--slow:#62aef5}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:14px/1.5 system-ui,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
main{max-width:1080px;margin:0 auto;padding:36px 20px 64px}
h1{font-size:24px;line-height:1.25;margin:0 0 4px;letter-spacing:-.01em}
h2{font-size:15px;margin:0}
.sub{color:var(--muted);margin:0 0 24px}
.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:18px 20px;margin:0 0 16px;overflow-x:auto}
.head{display:flex;justify-content:space-between;align-items:baseline;gap:16px;flex-wrap:wrap;margin:0 0 12px}
.note{color:var(--muted);font-size:13px;margin:0}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(112px,1fr));gap:12px;margin:0 0 16px}
.tile{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:12px 14px}
.tile b{display:block;white-space:nowrap;font-size:20px;font-weight:600;line-height:1.3;font-variant-numeric:tabular-nums;letter-spacing:-.01em}
.tile span{color:var(--muted);font-size:13px}
.tile.bad b{color:var(--failed)}
.key{display:flex;gap:14px;flex-wrap:wrap;color:var(--muted);font-size:13px}
.key i{display:inline-block;width:12px;height:3px;border-radius:2px;margin-right:6px;vertical-align:middle}
.key i.block{height:10px}
svg{display:block;width:100%;height:auto}
.over-time{min-width:620px}
.grid{stroke:var(--line);stroke-width:1}
.axis{fill:var(--muted);font-size:12px}
.line{fill:none;stroke-width:1.8;stroke-linejoin:round}
.p50.line{stroke:var(--p50)}.p95.line{stroke:var(--p95)}.p99.line{stroke:var(--p99)}
.p50.dot{fill:var(--p50)}.p95.dot{fill:var(--p95)}.p99.dot{fill:var(--p99)}
.area{fill:var(--area)}
rect.calls{fill:var(--calls)}rect.failed{fill:var(--failed)}
.hover{fill:transparent}.hover:hover{fill:var(--ink);fill-opacity:.06}
.bar{width:100%;min-width:120px;height:8px}
.connection_failed{fill:var(--connection_failed)}.query_failed{fill:var(--query_failed)}.query_rejected{fill:var(--query_rejected)}
.invalid_input{fill:var(--invalid_input)}.internal_error{fill:var(--internal_error)}.other{fill:var(--muted)}.slow{fill:var(--slow)}
table{border-collapse:collapse;width:100%}
th{text-align:left;font-weight:500;color:var(--muted);font-size:13px;padding:0 16px 6px 0;white-space:nowrap}
td{border-top:1px solid var(--line);padding:7px 16px 7px 0;vertical-align:top}
th:last-child,td:last-child{padding-right:0}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.mid td{vertical-align:middle}
.wide{width:40%}
code,pre{font:12.5px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
pre{margin:0;white-space:pre-wrap;overflow-wrap:anywhere;max-height:7.5em;overflow:auto}
.dim{color:var(--muted)}
.bad{color:var(--failed)}
td .bar{margin-top:5px}
`.replace(/\n/g, "")

const tile = (value: string, label: string, bad = false) =>
  `<div class="tile${bad ? " bad" : ""}"><b>${escape(value)}</b><span>${escape(label)}</span></div>`

const card = (title: string, aside: string, body: string) =>
  `<section class="card"><div class="head"><h2>${escape(title)}</h2>${aside}</div>${body}</section>`

const note = (text: string) => `<p class="note">${escape(text)}</p>`

const key = (entries: ReadonlyArray<readonly [color: string, label: string, block?: boolean]>) =>
  `<div class="key">${entries
    .map(
      ([color, label, block]) =>
        `<span><i${block ? ' class="block"' : ""} style="background:var(--${color})"></i>${label}</span>`
    )
    .join("")}</div>`

const table = (headings: ReadonlyArray<string>, rows: ReadonlyArray<string>, kind = "") =>
  `<table class="${kind}"><thead><tr>${headings
    .map((heading) => {
      const number = heading.startsWith("#")
      return `<th${number ? ' class="n"' : ""}>${escape(number ? heading.slice(1) : heading)}</th>`
    })
    .join("")}</tr></thead><tbody>${rows.map((row) => `<tr>${row}</tr>`).join("")}</tbody></table>`

const cell = (text: string) => `<td>${escape(text)}</td>`
const number = (text: string) => `<td class="n">${escape(text)}</td>`
const dim = '<span class="dim">–</span>'

const latencyCells = (latency: Latency | null) =>
  (["p50", "p95", "p99", "max"] as const)
    .map((name) => (latency === null ? `<td class="n">${dim}</td>` : number(Format.duration(latency[name]))))
    .join("")

const categories = [
  "connection_failed",
  "query_failed",
  "query_rejected",
  "invalid_input",
  "internal_error"
] as const
const colorOf = (category: string) => categories.find((known) => known === category) ?? "other"

const outcomeOf = ({ category, outcome }: Group) =>
  outcome === "failed" ? `<td><span class="bad">failed</span> ${escape(category ?? "")}</td>` : cell(outcome)

const groupRow = (group: Group) =>
  cell(group.tool) +
  cell(group.source ?? "–") +
  outcomeOf(group) +
  number(Format.count(group.calls)) +
  number(Format.count(group.retried)) +
  latencyCells(group.latency)

const statementRow = (slowest: number) => (statement: Statement) =>
  `<td class="wide"><pre>${escape(statement.statement)}</pre></td>` +
  cell(statement.source ?? "–") +
  `<td class="n">${escape(Format.duration(statement.maxMs))}${Chart.bar("slow", statement.maxMs, slowest)}</td>` +
  number(Format.duration(statement.meanMs)) +
  number(`${statement.callsAreExact ? "" : "≥ "}${Format.count(statement.calls)}`) +
  `<td class="n${statement.failed > 0 ? " bad" : ""}">${Format.count(statement.failed)}</td>` +
  `<td><code class="dim">${escape(statement.slowestCorrelationId)}</code></td>`

const failures = (report: Report) => {
  const most = Math.max(0, ...report.failures.map(({ calls }) => calls))
  if (report.failures.length === 0) return card("Failures by reason", "", note("No call failed."))
  const seen = categories.filter((category) =>
    report.failures.some((failure) => failure.category === category)
  )
  return card(
    "Failures by reason",
    key(seen.map((category) => [category, category, true])),
    table(
      ["Reason", "", "#Calls", "Sources", "Last"],
      report.failures
        .slice(0, 40)
        .map(
          ({ calls, category, lastCorrelationId, lastTime, reason, sources }) =>
            `<td title="${escape(category)}">${escape(reason)}</td>` +
            `<td class="wide">${Chart.bar(colorOf(category), calls, most)}</td>` +
            number(Format.count(calls)) +
            cell(sources.join(", ") || "–") +
            `<td title="${escape(Format.moment(lastTime))}"><code class="dim">${escape(lastCorrelationId)}</code></td>`
        ),
      "mid"
    )
  )
}

const slowest = (report: Report) => {
  const [first] = report.slowest
  if (first === undefined) return card("Slowest statements", "", note("The log holds no statements."))
  return card(
    "Slowest statements",
    note("by their slowest call, with its correlation id"),
    table(
      ["Statement", "Source", "#Slowest", "#Mean", "#Calls", "#Failed", "Correlation id"],
      report.slowest.map(statementRow(first.maxMs))
    )
  )
}

const undecodable = ({ undecodable: { first, lines } }: Report) =>
  lines === 0
    ? ""
    : card(
        "Lines that do not decode",
        note(
          lines > first.length ? `the first ${first.length} of ${Format.count(lines)}` : Format.count(lines)
        ),
        table(
          ["Where", "Why", "Begins with"],
          first.map(
            ({ file, line, text, why }) =>
              `${cell(`${file}:${line}`) + cell(why)}<td class="wide"><pre>${escape(text)}</pre></td>`
          )
        )
      )

const events = (report: Report) =>
  report.events.length === 0
    ? ""
    : card(
        "Other events",
        "",
        table(
          ["Event", "Source", "#Count", "Last"],
          report.events
            .slice(0, 40)
            .map(
              ({ count, event, lastTime, source }) =>
                cell(event) +
                cell(source ?? "–") +
                number(Format.count(count)) +
                cell(Format.moment(lastTime))
            )
        )
      )

const tiles = (report: Report) => {
  const { calls, cancelled, failed, latency, retried } = report
  const quantile = (name: keyof Latency) => (latency === null ? "–" : Format.duration(latency[name]))
  return [
    tile(Format.shortCount(calls), calls === 1 ? "call" : "calls"),
    tile(
      Format.shortCount(failed),
      `failed${calls > 0 ? `, ${Format.percent(failed, calls)}` : ""}`,
      failed > 0
    ),
    tile(Format.shortCount(cancelled), "cancelled"),
    tile(Format.shortCount(retried), "retried"),
    tile(quantile("p50"), "p50"),
    tile(quantile("p95"), "p95"),
    tile(quantile("p99"), "p99"),
    tile(quantile("max"), "slowest")
  ].join("")
}

/** What the figures leave out. */
const gaps = ({ droppedLines, undecodable: { lines } }: Report): string => {
  const told = [
    ...(lines > 0 ? [`${Format.count(lines)} lines do not decode`] : []),
    ...(droppedLines > 0 ? [`${Format.count(droppedLines)} lines were dropped by the server`] : [])
  ]
  return told.length === 0 ? "" : ` · <span class="bad">${escape(told.join(", "))}</span>`
}

export interface HtmlOptions {
  /** Seconds until a browser loads the page again, for a report that is being kept up to date. */
  readonly refreshSeconds?: number
}

export const render = (report: Report, { refreshSeconds }: HtmlOptions = {}): string => {
  const { bytes, intervals, lines } = report
  return [
    '<!doctype html><html lang="en"><head><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">`,
    refreshSeconds === undefined ? "" : `<meta http-equiv="refresh" content="${refreshSeconds}">`,
    `<title>mcp-query audit</title><style>${style}</style></head><body><main>`,
    `<h1>Call audit</h1><p class="sub">${escape(Caption.period(report))} · ${escape(Caption.files(report))} · ${escape(Format.count(lines))} lines, ${escape(Format.bytes(bytes))}${gaps(report)}</p>`,
    `<div class="tiles">${tiles(report)}</div>`,
    intervals.length === 0
      ? ""
      : card(
          "Latency and calls over time",
          key([
            ["p50", "p50"],
            ["p95", "p95"],
            ["p99", "p99"],
            ["calls", "calls", true],
            ["failed", "failed calls", true]
          ]),
          `<div class="over-time">${Chart.overTime(intervals)}</div>`
        ),
    failures(report),
    slowest(report),
    report.groups.length === 0
      ? ""
      : card(
          "Calls by tool, source and outcome",
          "",
          table(
            ["Tool", "Source", "Outcome", "#Calls", "#Retried", "#p50", "#p95", "#p99", "#Max"],
            report.groups.slice(0, 200).map(groupRow)
          )
        ),
    events(report),
    undecodable(report),
    "</main></body></html>\n"
  ].join("")
}
