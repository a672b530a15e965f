/** What must hold of every request, whatever was done to the server meanwhile. */
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import { CallEntry, LogEntry } from "../../src/CallLog.js"
import { optional } from "../../src/OptionalField.js"
import {
  ConnectionReason,
  EngineDetail,
  InputIssue,
  InputReason,
  QueryReason,
  RejectedReason
} from "../../src/QueryError.js"
import { QueryResult } from "../../src/QueryResult.js"
import { SchemaAnswer } from "../../src/SchemaResult.js"
import { PlanResult } from "../../src/Tool/Explain.js"
import { type Call, faultOutcomes, type Outcome } from "./Calls.js"
import type { Asked, Client, Heard, Stall } from "./Client.js"

const strict = { onExcessProperty: "error", errors: "first" } as const

// ---------------------------------------------------------------------------------------------------------------------
// The contract's Schemas of an answer

const shared = {
  message: Schema.NonEmptyString,
  hint: optional(Schema.NonEmptyString),
  retryable: Schema.Boolean,
  source: optional(Schema.String),
  correlationId: Schema.String.pipe(Schema.pattern(/^[0-9A-HJKMNP-TV-Z]{26}$/))
}
const engine = optional(EngineDetail)

export const ErrorAnswer = Schema.Struct({
  error: Schema.Union(
    Schema.Struct({
      ...shared,
      category: Schema.Literal("invalid_input"),
      reason: InputReason,
      issues: Schema.NonEmptyArray(InputIssue)
    }),
    Schema.Struct({
      ...shared,
      engine,
      category: Schema.Literal("connection_failed"),
      reason: ConnectionReason
    }),
    Schema.Struct({ ...shared, engine, category: Schema.Literal("query_rejected"), reason: RejectedReason }),
    Schema.Struct({ ...shared, engine, category: Schema.Literal("query_failed"), reason: QueryReason }),
    Schema.Struct({
      ...shared,
      category: Schema.Literal("internal_error"),
      reason: Schema.Literal("unexpected")
    })
  )
})
type ErrorAnswer = typeof ErrorAnswer.Type

const Text = Schema.Tuple(Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }))
const Succeeded = Schema.Struct({ content: Text, structuredContent: optional(Schema.Unknown) })
const Failed = Schema.Struct({ content: Text, isError: Schema.Literal(true) })
const Result = Schema.Union(Failed, Succeeded)

const outputs: Readonly<Record<string, Schema.Schema.AnyNoContext>> = {
  query: QueryResult,
  explain: PlanResult,
  schema: SchemaAnswer
}

const Response = Schema.Struct({ jsonrpc: Schema.Literal("2.0"), id: Schema.Unknown, result: Schema.Unknown })
const ErrorResponse = Schema.Struct({
  jsonrpc: Schema.Literal("2.0"),
  id: Schema.Unknown,
  error: Schema.Struct({
    code: Schema.Number,
    message: Schema.NonEmptyString,
    data: optional(Schema.Unknown)
  })
})

const isRetryable = ({ category, reason }: ErrorAnswer["error"]) =>
  category === "connection_failed"
    ? !["authentication", "tls", "database_not_found", "file_not_found", "file_unreadable"].includes(reason)
    : (category === "query_rejected" && reason === "overloaded") ||
      (category === "query_failed" && reason === "lock_timeout")

// ---------------------------------------------------------------------------------------------------------------------
// One answer

export interface Judgement {
  readonly outcome: Outcome
  readonly correlationId: string | undefined
  readonly violations: ReadonlyArray<string>
}

export interface Conditions {
  readonly structuredContent: boolean
  /** Whether faults are injected at all. */
  readonly faulty: boolean
  /** What more may come of calls on a source, because of what was done to it. */
  readonly allowed: ReadonlyMap<string, ReadonlySet<Outcome>>
}

const decode = <A, I>(schema: Schema.Schema<A, I>, value: unknown): Either.Either<A, string> =>
  Either.mapLeft(Schema.decodeUnknownEither(schema, strict)(value), (error) =>
    ParseResult.TreeFormatter.formatErrorSync(error).replace(/\s+/g, " ").slice(0, 400)
  )

const parsed = (text: string): Either.Either<unknown, string> => {
  try {
    return Either.right(JSON.parse(text))
  } catch {
    return Either.left("the text is no JSON")
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** An outcome is expected where it or its category is. */
const among = (outcome: Outcome, expected: ReadonlyArray<Outcome>) =>
  expected.includes(outcome) || expected.includes(outcome.split("/")[0] ?? outcome)

const judgeSuccess = (call: Call, value: unknown): ReadonlyArray<string> => {
  const schema = outputs[call.tool]
  if (schema === undefined) return [`there is no tool ${call.tool}`]
  const decoded = decode(Schema.asSchema(schema), value)
  if (Either.isLeft(decoded)) return [`the answer does not decode: ${decoded.left}`]
  if (call.tool !== "query" || !isRecord(value)) return []
  const rows = value["rows"]
  const violations: Array<string> = []
  if (!Array.isArray(rows) || rows.length !== value["rowCount"])
    violations.push("rowCount is not the number of rows")
  if (value["truncated"] !== (value["truncatedBy"] !== undefined))
    violations.push("truncated and truncatedBy differ")
  const checked = call.check?.(value)
  return checked === undefined ? violations : [...violations, checked]
}

const judgeCall = (call: Call, result: unknown, conditions: Conditions): Judgement => {
  const wrong = (violation: string): Judgement => ({
    outcome: "undecodable",
    correlationId: undefined,
    violations: [violation]
  })
  const decoded = decode(Result, result)
  if (Either.isLeft(decoded)) return wrong(`the result does not decode: ${decoded.left}`)
  const facts = parsed(decoded.right.content[0].text)
  if (Either.isLeft(facts)) return wrong(facts.left)
  if ("isError" in decoded.right) {
    const failure = decode(ErrorAnswer, facts.right)
    if (Either.isLeft(failure)) return wrong(`the error does not decode: ${failure.left}`)
    const { error } = failure.right
    const outcome = `${error.category}/${error.reason}`
    const violations: Array<string> = []
    if (error.retryable !== isRetryable(error))
      violations.push(`${outcome} says retryable: ${error.retryable}`)
    const allowed = [
      ...call.expected,
      ...(conditions.faulty && call.target !== undefined ? faultOutcomes : []),
      ...(call.target === undefined ? [] : (conditions.allowed.get(call.target.id) ?? []))
    ]
    if (!among(outcome, allowed))
      violations.push(`${outcome} for a call of kind ${call.kind}: ${error.message}`)
    return { outcome, correlationId: error.correlationId, violations }
  }
  const violations = [...judgeSuccess(call, facts.right)]
  if (!among("succeeded", call.expected)) violations.push(`a call of kind ${call.kind} succeeded`)
  if (conditions.structuredContent !== "structuredContent" in decoded.right)
    violations.push("structured content is not as configured")
  if (
    conditions.structuredContent &&
    JSON.stringify(decoded.right.structuredContent) !== decoded.right.content[0].text
  )
    violations.push("the text and the structured content differ")
  return { outcome: "succeeded", correlationId: undefined, violations }
}

/** Judges what came for a request. */
export const judge = (asked: Asked, { message }: Heard, conditions: Conditions): Judgement => {
  const error = decode(ErrorResponse, message)
  if (Either.isRight(error)) {
    const { code } = error.right.error
    const violations = asked.errorCodes.includes(code)
      ? []
      : [`a protocol error ${code} (${error.right.error.message})`]
    return { outcome: `protocol ${code}`, correlationId: undefined, violations }
  }
  const response = decode(Response, message)
  if (Either.isLeft(response))
    return {
      outcome: "undecodable",
      correlationId: undefined,
      violations: [`the response does not decode: ${response.left}`]
    }
  if (asked.call !== undefined) return judgeCall(asked.call, response.right.result, conditions)
  return {
    outcome: `${asked.method} answered`,
    correlationId: undefined,
    violations: asked.errorCodes.length > 0 ? ["it was answered in place of a protocol error"] : []
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Time

/** What an answer may take beyond its deadline. */
export const slackMs = 2000

/** How long of `[from, to]` answers could not arrive, with some time for what had piled up. */
const stalledMs = (stalls: ReadonlyArray<Stall>, from: number, to: number) =>
  stalls.reduce((sum, stall) => {
    const overlap = Math.min(to, stall.to + 1000) - Math.max(from, stall.from)
    return sum + Math.max(0, overlap)
  }, 0)

/** Milliseconds beyond the deadline and its slack. */
export const lateMs = ({ deadlineMs, sentAt }: Asked, at: number, stalls: ReadonlyArray<Stall>): number =>
  at - sentAt - deadlineMs - slackMs - stalledMs(stalls, sentAt, at)

// ---------------------------------------------------------------------------------------------------------------------
// Secrets

/** Looks for texts in a stream, also where chunks cut them. */
export const searcher = (texts: ReadonlyArray<string>, found: (text: string) => void) => {
  const longest = Math.max(0, ...texts.map(({ length }) => Buffer.byteLength(" ".repeat(length)) * 3))
  const escaped = texts.flatMap((text) => [text, JSON.stringify(text).slice(1, -1)])
  let rest = ""
  return (bytes: Buffer) => {
    const text = rest + bytes.toString("latin1")
    for (const secret of escaped) if (text.includes(secret)) found(secret)
    rest = text.slice(-longest)
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// The log

const decodeLine = Schema.decodeUnknownEither(Schema.parseJson(LogEntry))
const isCallEntry = Schema.is(CallEntry)

export interface LogJudgement {
  readonly violations: ReadonlyArray<string>
  readonly outcomes: ReadonlyMap<string, number>
  readonly attempts: number
}

/** Each call has one line, with the outcome and the correlation id of its answer. */
export const judgeLog = (
  lines: ReadonlyArray<string>,
  client: Client,
  answers: ReadonlyMap<Asked, ReadonlyArray<Judgement>>,
  conditions: { readonly killed: boolean; readonly corrupted: boolean }
): LogJudgement => {
  const violations: Array<string> = []
  const entries = new Map<string | number, Array<typeof CallEntry.Type>>()
  const outcomes = new Map<string, number>()
  let retried = 0
  for (const [at, line] of lines.entries()) {
    if (line === "") continue
    const decoded = decodeLine(line)
    if (Either.isLeft(decoded)) {
      // A server that is killed may have written half of a line.
      if (!(conditions.killed && at === lines.length - 1))
        violations.push(`a line of the log does not decode: ${line.slice(0, 300)}`)
      continue
    }
    const entry = decoded.right
    if (!isCallEntry(entry)) {
      if (entry.event === "uncaught" && !conditions.corrupted)
        violations.push(`an uncaught fault: ${line.slice(0, 600)}`)
      continue
    }
    if (entry.attempts > 1) retried++
    outcomes.set(entry.outcome, (outcomes.get(entry.outcome) ?? 0) + 1)
    const known = entries.get(entry.requestId) ?? []
    known.push(entry)
    entries.set(entry.requestId, known)
  }
  const ids = new Set<string>()
  for (const list of entries.values())
    for (const { correlationId } of list) {
      if (ids.has(correlationId)) violations.push(`the correlation id ${correlationId} was used twice`)
      ids.add(correlationId)
    }
  for (const asked of client.asked.values()) {
    if (asked.call === undefined) continue
    const found = entries.get(asked.id) ?? []
    entries.delete(asked.id)
    const judged = answers.get(asked) ?? []
    const what = `${asked.call.kind} (id ${asked.id})`
    if (found.length !== asked.wanted && !conditions.killed)
      violations.push(`${what} has ${found.length} lines in the log, not ${asked.wanted}`)
    const unmatched = [...found]
    for (const { correlationId, outcome } of judged) {
      const matches = (entry: typeof CallEntry.Type) =>
        correlationId === undefined
          ? entry.outcome === outcome
          : entry.correlationId === correlationId && `${entry.category}/${entry.reason}` === outcome
      const at = unmatched.findIndex(matches)
      if (at >= 0) unmatched.splice(at, 1)
      else if (!conditions.killed && found.length > 0)
        violations.push(
          `${what}: the answer ${outcome} is not what the log says: ${JSON.stringify(found).slice(0, 300)}`
        )
    }
    if (asked.cancelledAt === undefined && found.some(({ outcome }) => outcome === "cancelled"))
      violations.push(`${what} is logged as cancelled and was not`)
  }
  for (const [id] of entries) violations.push(`the log has a call that nobody made (id ${id})`)
  return { violations, outcomes, attempts: retried }
}
