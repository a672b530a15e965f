/** `mcp-query check`: whether each source can be reached, and what its login could do beyond reading. */
import * as Effect from "effect/Effect"
import type { SourceReport } from "../Adapter.js"
import { CallLog, fromSink } from "../CallLog.js"
import { exitCode } from "../FatalError.js"
import { type AdapterFailure, ConnectionFailed, connectionMessage } from "../QueryError.js"
import type { Settings } from "../Settings.js"
import { reportTimeoutMs } from "../Sources/ConnectionEvents.js"
import { fromSettings, type Source } from "../Sources.js"
import { textTable } from "./TextTable.js"

export interface Checked {
  readonly id: string
  readonly engine: string
  readonly limits: Source["limits"]
  readonly latencyMs: number
  readonly report?: SourceReport
  readonly failure?: { readonly reason: string; readonly message: string; readonly hint?: string }
}

const failureOf = ({ hint, message, reason }: AdapterFailure) => ({
  reason,
  message,
  ...(hint === undefined ? {} : { hint })
})

const checkOne = (source: Source): Effect.Effect<Checked> =>
  Effect.gen(function* () {
    const adapter = yield* source.adapter
    const from = performance.now()
    const outcome = yield* adapter.report.pipe(
      Effect.timeoutFail({
        duration: source.limits.connectTimeoutMs + reportTimeoutMs,
        onTimeout: () => new ConnectionFailed({ reason: "timeout", message: connectionMessage.timeout })
      }),
      Effect.either
    )
    const base = {
      id: source.id,
      engine: source.engine,
      limits: source.limits,
      latencyMs: Math.round((performance.now() - from) * 10) / 10
    }
    return outcome._tag === "Right"
      ? { ...base, report: outcome.right }
      : { ...base, failure: failureOf(outcome.left) }
  })

const overview = (all: ReadonlyArray<Checked>) =>
  textTable(
    ["source", "engine", "reachable", "ms", "version", "TLS", "login", "beyond reading"],
    all.map(({ engine, failure, id, latencyMs, report }) => [
      id,
      engine,
      failure === undefined ? "yes" : `no: ${failure.reason}`,
      latencyMs,
      report?.version,
      report === undefined || report.tls === null ? null : report.tls ? "yes" : "no",
      report?.login,
      report === undefined
        ? null
        : report.excessPrivileges.length === 0
          ? "nothing"
          : report.excessPrivileges.length
    ]),
    ""
  )

const details = ({ failure, id, limits, report }: Checked): ReadonlyArray<string> => [
  "",
  `${id}: ${Object.entries(limits)
    .map(([name, value]) => `${name} ${value}`)
    .join(", ")}`,
  ...(failure === undefined
    ? []
    : [`  ${failure.message}`, ...(failure.hint === undefined ? [] : [`  ${failure.hint}`])]),
  ...(report?.excessPrivileges.map((privilege) => `  may also: ${privilege}`) ?? []),
  ...(report !== undefined && report.excessPrivileges.length > 0 && report.leastPrivilege.length > 0
    ? [
        "  a login with no more than it needs:",
        ...report.leastPrivilege.map((statement) => `    ${statement}`)
      ]
    : [])
]

/** Prints a table for people, or with `json` one document for programs. Succeeds with the exit code. */
export const check = (settings: Settings, options: { readonly json: boolean }): Effect.Effect<number> =>
  Effect.gen(function* () {
    const sources = yield* fromSettings(settings.sources)
    const all = yield* Effect.forEach(sources.all, checkOne, { concurrency: 8 })
    const text = options.json
      ? JSON.stringify({ sources: all })
      : [overview(all), ...all.flatMap(details)].join("\n")
    yield* Effect.sync(() => void process.stdout.write(`${text}\n`))
    return all.some(({ failure }) => failure !== undefined) ? exitCode.failed : exitCode.ok
  }).pipe(
    Effect.provideService(
      CallLog,
      fromSink(settings.log, settings.secrets, { write: () => {}, pending: () => 0 })
    ),
    Effect.scoped
  )
