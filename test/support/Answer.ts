/** The answer of a tool call as the contract describes it; whatever else a result holds makes a test fail. */
import { expect } from "vitest"

export interface QueryAnswer {
  readonly columns: ReadonlyArray<string>
  readonly columnTypes: ReadonlyArray<string | null>
  readonly rows: ReadonlyArray<unknown>
  readonly rowCount: number
  readonly durationMs: number
  readonly truncated: boolean
  readonly truncatedBy?: string
  readonly truncatedCells?: ReadonlyArray<{ row: number; column: string; bytes: number }>
  readonly notes?: ReadonlyArray<string>
}

export interface ErrorAnswer {
  readonly category: string
  readonly reason: string
  readonly message: string
  readonly hint?: string
  readonly retryable: boolean
  readonly source?: string
  readonly correlationId: string
  readonly engine?: { readonly code?: string; readonly position?: number }
  readonly issues?: ReadonlyArray<{ path: string; reason: string; expected: string; received: string }>
}

export type Answer =
  | { readonly ok: true; readonly value: QueryAnswer }
  | { readonly ok: false; readonly error: ErrorAnswer }

/** The categories with the reasons that may stand beside them. */
export const reasons: Record<string, ReadonlyArray<string>> = {
  invalid_input: ["missing_argument", "unknown_argument", "wrong_type", "out_of_range", "unknown_source"],
  connection_failed: [
    "refused",
    "timeout",
    "dns",
    "authentication",
    "tls",
    "database_not_found",
    "file_not_found",
    "file_unreadable",
    "too_many_connections",
    "closed"
  ],
  query_rejected: [
    "read_only",
    "multiple_statements",
    "statement_type",
    "function_denied",
    "unverifiable",
    "overloaded"
  ],
  query_failed: [
    "syntax",
    "unknown_table",
    "unknown_column",
    "unknown_function",
    "ambiguous_name",
    "permission_denied",
    "type_mismatch",
    "division_by_zero",
    "out_of_range",
    "constraint",
    "parameters",
    "timeout",
    "lock_timeout",
    "resource_limit",
    "engine_error"
  ],
  internal_error: ["unexpected"]
}

const lasting = ["authentication", "tls", "database_not_found", "file_not_found", "file_unreadable"]

const isRetryable = ({ category, reason }: ErrorAnswer) =>
  category === "connection_failed"
    ? !lasting.includes(reason)
    : reason === "overloaded" || reason === "lock_timeout"

const ulid = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/

const checkError = (error: ErrorAnswer) => {
  const { category, correlationId, issues, message, reason, retryable, ...rest } = error
  expect(Object.keys(rest).filter((key) => !["hint", "source", "engine"].includes(key))).toEqual([])
  expect(Object.keys(reasons)).toContain(category)
  expect(reasons[category]).toContain(reason)
  expect(message).not.toBe("")
  expect(correlationId).toMatch(ulid)
  expect(retryable).toBe(isRetryable(error))
  expect(issues !== undefined).toBe(category === "invalid_input")
  if (category === "connection_failed" || category === "internal_error")
    expect(`${message} ${rest.hint ?? ""}`).not.toMatch(/SQLITE_|\bat .*:\d+:\d+|[\\/](tmp|home|root|var)\b/)
}

/** Decodes a result of tools/call and checks its form. */
export const answerOf = (result: Record<string, unknown>, structured = true): Answer => {
  expect(result["content"]).toEqual([{ type: "text", text: expect.any(String) }])
  const [block] = result["content"] as ReadonlyArray<{ readonly text: string }>
  const text = block?.text ?? ""
  const facts: unknown = JSON.parse(text)
  // Compact: what JSON.stringify would write.
  expect(text).toBe(JSON.stringify(facts))
  if (result["isError"] === true) {
    expect(Object.keys(result).sort()).toEqual(["content", "isError"])
    const { error } = facts as { readonly error: ErrorAnswer }
    expect(facts).toEqual({ error })
    checkError(error)
    return { ok: false, error }
  }
  expect(Object.keys(result).sort()).toEqual(structured ? ["content", "structuredContent"] : ["content"])
  if (structured) expect(result["structuredContent"]).toEqual(facts)
  return { ok: true, value: facts as QueryAnswer }
}

/** The value of an answer that must be no error. */
export const valueOf = (answer: Answer): QueryAnswer => {
  if (!answer.ok) throw new Error(`An error came: ${JSON.stringify(answer.error)}`)
  return answer.value
}

/** The error of an answer that must be one. */
export const errorOf = (answer: Answer): ErrorAnswer => {
  if (answer.ok) throw new Error(`Rows came: ${JSON.stringify(answer.value).slice(0, 200)}`)
  return answer.error
}
