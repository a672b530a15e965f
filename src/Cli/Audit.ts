/** `mcp-query audit LOGFILE...`: what call logs say, as text, JSON or a page, once or as they grow. */
import { writeFile } from "node:fs"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { Scope } from "effect/Scope"
import * as Format from "../Audit/Format.js"
import * as Html from "../Audit/Html.js"
import * as LogFile from "../Audit/LogFile.js"
import * as LogLine from "../Audit/LogLine.js"
import type { Report } from "../Audit/Report.js"
import * as Since from "../Audit/Since.js"
import * as Summary from "../Audit/Summary.js"
import { FatalError, type Problem } from "../FatalError.js"
import * as Arguments from "./Arguments.js"
import * as AuditText from "./AuditText.js"

export const usage = `mcp-query audit LOGFILE...      summarise call logs; - is standard input

Options
  --since WHEN    only entries since then: ${Since.forms}
  --json          the report as JSON
  --html FILE     the report as a page, with charts; FILE is overwritten
  --follow        keep reading as the files grow, and keep the report up to date, until Ctrl+C`

interface Options {
  readonly files: ReadonlyArray<string>
  readonly since: number | undefined
  readonly json: boolean
  readonly html: string | undefined
  readonly follow: boolean
}

const optionsOf = (argv: ReadonlyArray<string>): Effect.Effect<Options | undefined, FatalError> =>
  Effect.gen(function* () {
    const { positionals, values } = yield* Arguments.parse(
      {
        args: [...argv],
        allowPositionals: true,
        options: {
          since: { type: "string" },
          json: { type: "boolean" },
          html: { type: "string" },
          follow: { type: "boolean", short: "f" },
          help: { type: "boolean", short: "h" }
        }
      },
      "LOGFILE... [--since WHEN] [--json] [--html FILE] [--follow]"
    )
    if (values.help) return undefined
    const since = values.since === undefined ? Either.right(undefined) : Since.parse(values.since, Date.now())
    const problems: Array<Problem> = []
    if (positionals.length === 0)
      problems.push({
        where: "LOGFILE",
        expected: "one or more log files, or - for standard input",
        found: "none"
      })
    if (Either.isLeft(since))
      problems.push({ where: "--since", expected: since.left, found: JSON.stringify(values.since) })
    const [first, ...rest] = problems
    if (first !== undefined) return yield* new FatalError({ problems: [first, ...rest] })
    return {
      files: positionals,
      since: Either.getOrUndefined(since),
      json: values.json === true,
      html: values.html,
      follow: values.follow === true
    }
  })

/** Waits until the text is taken; a reader that has gone away has seen enough. */
const say = (text: string): Effect.Effect<void> =>
  Effect.async<void>((resume) => {
    process.stdout.write(text, () => resume(Effect.void))
  })

const save = (file: string, text: string): Effect.Effect<void, FatalError> =>
  Effect.async((resume) => {
    writeFile(file, text, (error) =>
      resume(
        error === null
          ? Effect.void
          : new FatalError({
              problems: [
                {
                  where: "--html",
                  expected: `a file that can be written at ${file}`,
                  found: error.code ?? "none"
                }
              ]
            })
      )
    )
  })

const interrupted = Effect.async<void>((resume) => {
  const stop = () => resume(Effect.void)
  process.once("SIGINT", stop).once("SIGTERM", stop)
  return Effect.sync(() => process.off("SIGINT", stop).off("SIGTERM", stop))
})

/** How far the reading is, on a terminal only. */
const progressLine = () => {
  const to = process.stderr
  let [done, shownAt] = [0, performance.now()]
  let shown = false
  return {
    add: (bytes: number, whole: number | undefined, lines: number) => {
      done += bytes
      const now = performance.now()
      if (!to.isTTY || now - shownAt < 100) return
      shownAt = now
      shown = true
      const of =
        whole === undefined
          ? ""
          : ` of ${Format.bytes(whole)}, ${Format.percent(Math.min(done, whole), whole)}`
      to.write(`\r\u001b[K${Format.bytes(done)}${of}, ${Format.count(lines)} lines`)
    },
    clear: () => {
      if (shown) to.write("\r\u001b[K")
      shown = false
    }
  }
}

const followMs = 500
const refreshSeconds = 5
const begins = 200

const publish = (report: Report, { follow, html, json }: Options): Effect.Effect<void, FatalError> =>
  Effect.gen(function* () {
    if (html !== undefined) yield* save(html, Html.render(report, follow ? { refreshSeconds } : {}))
    if (json) return yield* say(`${JSON.stringify(report, null, follow ? undefined : 2)}\n`)
    const { columns, isTTY } = process.stdout
    const text = AuditText.render(report, {
      columns: isTTY ? columns : undefined,
      heading: (title) => (isTTY ? `\u001b[1m${title}\u001b[0m` : title)
    })
    const page = html === undefined ? "" : `\n\nThe page is in ${html}`
    // A terminal that follows shows the report in place.
    yield* say(
      `${follow && isTTY ? "\u001b[H\u001b[2J\u001b[3J" : ""}${text}${page}\n${follow && !isTTY ? "\n" : ""}`
    )
  })

const run = (options: Options): Effect.Effect<void, FatalError, Scope> =>
  Effect.gen(function* () {
    const summary = Summary.make({ since: options.since })
    const progress = progressLine()
    let lines = 0
    let whole: number | undefined
    const sinkOf = (file: string): LogFile.LineSink => {
      const undecodable = (line: number, why: string, text: string) =>
        summary.undecodable({ file, line, why, text: text.slice(0, begins) })
      return {
        line: (bytes, number) => {
          lines++
          summary.line(bytes.length + 1)
          const text = bytes.toString("utf8")
          const parsed = LogLine.parse(text)
          if (parsed === undefined) return
          if (Either.isRight(parsed)) summary.entry(parsed.right.entry, parsed.right.time)
          else undecodable(number, parsed.left, text)
        },
        tooLong: (number) => {
          lines++
          summary.line(0)
          undecodable(number, "the line is too long", "")
        },
        progress: (bytes) => progress.add(bytes, whole, lines)
      }
    }
    const logs = yield* Effect.forEach(options.files, (file) => LogFile.make(file, sinkOf(file)))
    const sizes = logs.map(({ size }) => size)
    whole = sizes.every((size) => size !== undefined)
      ? sizes.reduce((sum: number, size) => sum + (size ?? 0), 0)
      : undefined
    const names = logs.map(({ name }) => name)
    const readAll = Effect.map(
      Effect.forEach(logs, ({ read }) => read),
      (any) => any.includes(true)
    )

    yield* readAll
    progress.clear()
    if (!options.follow) {
      yield* Effect.forEach(logs, ({ end }) => end)
      return yield* publish(summary.report(names), options)
    }
    yield* publish(summary.report(names), options)
    const round = Effect.gen(function* () {
      yield* Effect.sleep(followMs)
      if (yield* readAll) yield* publish(summary.report(names), options)
    })
    yield* Effect.raceFirst(Effect.forever(round), interrupted)
  })

/** Runs the command with the arguments behind its name. */
export const audit = (argv: ReadonlyArray<string>): Effect.Effect<number | undefined, FatalError> =>
  Effect.gen(function* () {
    process.stdout.on("error", () => process.exit(0))
    const options = yield* optionsOf(argv)
    if (options === undefined) yield* say(`${usage}\n`)
    else yield* Effect.scoped(run(options))
    return undefined
  })
