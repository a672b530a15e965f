/** The handed expectations of `test/workbooks/expected.json`, and how an answer is judged by them. */
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

export interface Doubt {
  readonly at: string
  readonly alsoAccept?: ReadonlyArray<unknown>
  readonly alsoAcceptError?: { readonly category: string; readonly reason?: string }
  readonly alsoAcceptRows?: { readonly columns: unknown; readonly rows: unknown }
}

interface Refusal {
  readonly category: string
  readonly reason: string
  readonly messageMatches?: string
}

export interface Question {
  readonly sql: string
  readonly columns?: ReadonlyArray<unknown>
  readonly columnTypes?: ReadonlyArray<unknown>
  readonly rows?: ReadonlyArray<unknown>
  readonly notesMatch?: string
  readonly error?: Refusal
  readonly doubtful?: ReadonlyArray<Doubt>
}

interface Expectation {
  readonly sheets?: ReadonlyArray<{ readonly name: string; readonly hidden: boolean }>
  readonly queries?: ReadonlyArray<Question>
  readonly error?: Refusal
  readonly doubtful?: ReadonlyArray<Doubt>
}

export interface Answer {
  readonly failure?: { readonly category: string; readonly reason: string; readonly text: string }
  readonly result?: {
    readonly columns: ReadonlyArray<unknown>
    readonly columnTypes: ReadonlyArray<unknown>
    readonly rows: ReadonlyArray<unknown>
    readonly notes: ReadonlyArray<string>
  }
}

export const folder = fileURLToPath(new URL("../../workbooks/", import.meta.url))

const expected: Record<string, Expectation> = JSON.parse(readFileSync(`${folder}expected.json`, "utf8"))

/** Each file with the questions to it; what holds for the whole file is added to each. */
export const files: ReadonlyArray<readonly [file: string, questions: ReadonlyArray<Question>]> =
  Object.entries(expected).map(([file, { doubtful = [], error, queries = [], sheets }]) => {
    const asked: Array<Question> = [...queries]
    if (sheets !== undefined)
      asked.push({
        sql: "select name, hidden from xl_sheets",
        columns: ["name", "hidden"],
        rows: sheets.map(({ hidden, name }) => [name, hidden]),
        doubtful: queries.flatMap((query) => (query.doubtful ?? []).filter((doubt) => doubt.alsoAcceptError))
      })
    return [
      file,
      asked.map((question) => ({
        ...question,
        ...(error === undefined ? {} : { error }),
        doubtful: [...(question.doubtful ?? []), ...doubtful]
      }))
    ]
  })

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null

const differences = (wanted: unknown, got: unknown, path: string): ReadonlyArray<string> => {
  if (wanted === got) return []
  if (!isObject(wanted) || !isObject(got) || Array.isArray(wanted) !== Array.isArray(got))
    return [`${path}: expected ${JSON.stringify(wanted)}, got ${JSON.stringify(got)}`]
  const a = new Map(Object.entries(wanted))
  const b = new Map(Object.entries(got))
  if (a.size !== b.size) return [`${path}: expected ${JSON.stringify(wanted)}, got ${JSON.stringify(got)}`]
  return [...a.keys()].flatMap((key) => differences(a.get(key), b.get(key), `${path}.${key}`))
}

const at = (value: unknown, path: ReadonlyArray<string>): unknown =>
  path.reduce<unknown>(
    (inner, key) => (isObject(inner) ? new Map(Object.entries(inner)).get(key) : undefined),
    value
  )

/** What is wrong with an answer; nothing where it is right. */
export const judge = (question: Question, { failure, result }: Answer): ReadonlyArray<string> => {
  const { doubtful = [], error } = question
  if (failure !== undefined) {
    const accepted = [error, ...doubtful.map(({ alsoAcceptError }) => alsoAcceptError)].flatMap(
      (each) => each ?? []
    )
    const fits = accepted.some(
      ({ category, reason }) => category === failure.category && (reason ?? failure.reason) === failure.reason
    )
    if (!fits) return [`got ${failure.category}/${failure.reason}: ${failure.text}`]
    return error?.messageMatches === undefined || new RegExp(error.messageMatches, "i").test(failure.text)
      ? []
      : [`the message does not fit: ${failure.text}`]
  }
  if (error !== undefined) {
    const fine = doubtful.some(({ alsoAccept, alsoAcceptError, alsoAcceptRows }) =>
      alsoAcceptRows === undefined
        ? alsoAccept === undefined && alsoAcceptError === undefined
        : differences([alsoAcceptRows.columns, alsoAcceptRows.rows], [result?.columns, result?.rows], "")
            .length === 0
    )
    return fine ? [] : [`expected ${error.category}/${error.reason}, got rows`]
  }
  const fields = ["columns", "columnTypes", "rows"] as const
  const doubted = (path: string, got: unknown) =>
    doubtful.some(
      ({ alsoAccept = [], at: place }) =>
        place !== "" &&
        (place.match(/\w+/g) ?? []).join(".") === path &&
        alsoAccept.some((value) => differences(value, got, "").length === 0)
    )
  return [
    ...fields
      .filter((field) => question[field] !== undefined && !doubted(field, result?.[field]))
      .flatMap((field) => differences(question[field], result?.[field], field))
      .filter((problem) => {
        const path = problem.slice(0, problem.indexOf(":"))
        return !doubted(path, at(result, path.split(".")))
      }),
    ...(question.notesMatch === undefined ||
    new RegExp(question.notesMatch, "i").test((result?.notes ?? []).join("\n"))
      ? []
      : [`the notes do not fit: ${JSON.stringify(result?.notes)}`])
  ]
}
