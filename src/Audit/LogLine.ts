/** A line of a file → an entry of the call log, or why it is none. */
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import { CallEntry, LogEntry } from "../CallLog.js"
import { formatPath, schemaIssues } from "../SchemaIssue.js"

export interface Decoded {
  readonly entry: LogEntry
  /** Milliseconds of the epoch. */
  readonly time: number
}

const decode = Schema.decodeUnknownEither(LogEntry)
const decodeCall = Schema.decodeUnknownEither(CallEntry)

const isCall = (value: unknown) =>
  typeof value === "object" && value !== null && Reflect.get(value, "event") === "tool_call"

const whyNot = (value: unknown): string => {
  if (typeof value !== "object" || value === null || !("event" in value)) return "no log entry"
  const decoded = isCall(value) ? decodeCall(value) : decode(value)
  const [issue] = Either.isLeft(decoded) ? schemaIssues(decoded.left.issue) : []
  return issue === undefined
    ? "no log entry"
    : `${formatPath(issue.path) || "the line"}: expected ${issue.expected}, found ${issue.received}`
}

/** Left: what is wrong, in a few words. Undefined for a blank line. */
export const parse = (text: string): Either.Either<Decoded, string> | undefined => {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return text.trim() === "" ? undefined : Either.left("not JSON")
  }
  const decoded = decode(value)
  if (Either.isLeft(decoded)) return Either.left(whyNot(value))
  const entry = decoded.right
  const time = Date.parse(entry.time)
  if (Number.isNaN(time)) return Either.left("time: expected an ISO 8601 time")
  if (
    entry.event === "tool_call" &&
    typeof entry.durationMs === "number" &&
    !(entry.durationMs >= 0 && entry.durationMs < Number.POSITIVE_INFINITY)
  )
    return Either.left("durationMs: expected a number of milliseconds")
  return Either.right({ entry, time })
}
