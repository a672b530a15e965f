/**
 * Every way in which a call can fail, as tagged errors. An adapter fails with exactly
 * {@link AdapterFailure}; `InvalidInput` belongs to argument decoding, and a defect has no type at all.
 *
 * `message` and `hint` are shown to the caller and are therefore safe by construction: no password, user, host,
 * port, path or stack. What the driver said goes into `cause`, which only the call log sees.
 */
import * as Schema from "effect/Schema"

export const ConnectionReason = Schema.Literal(
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
)
export type ConnectionReason = typeof ConnectionReason.Type

export const RejectedReason = Schema.Literal(
  "read_only",
  "multiple_statements",
  "statement_type",
  "function_denied",
  "unverifiable",
  "overloaded"
)
export type RejectedReason = typeof RejectedReason.Type

export const QueryReason = Schema.Literal(
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
)
export type QueryReason = typeof QueryReason.Type

export const InputReason = Schema.Literal(
  "missing_argument",
  "unknown_argument",
  "wrong_type",
  "out_of_range",
  "unknown_source"
)
export type InputReason = typeof InputReason.Type

/**
 * What the engine itself named: `code` is the SQLSTATE (PostgreSQL), the extended result code's name (SQLite,
 * workbooks) or the error number as text (SQL Server); `position` counts characters from 1 in the caller's SQL.
 */
export const EngineDetail = Schema.Struct({
  code: Schema.optionalWith(Schema.String, { exact: true }),
  position: Schema.optionalWith(Schema.Number, { exact: true }),
  line: Schema.optionalWith(Schema.Number, { exact: true }),
  column: Schema.optionalWith(Schema.Number, { exact: true })
})
export type EngineDetail = typeof EngineDetail.Type

const details = {
  /** Safe to show; for an engine's refusal, the engine's own sentence. */
  message: Schema.String,
  /** What the caller can do next; safe to show. */
  hint: Schema.optionalWith(Schema.String, { exact: true }),
  engine: Schema.optionalWith(EngineDetail, { exact: true }),
  /** The driver's own error, for the call log only. */
  cause: Schema.optionalWith(Schema.Unknown, { exact: true })
}

/** The adapter cannot reach the data source. */
export class ConnectionFailed extends Schema.TaggedError<ConnectionFailed>()("ConnectionFailed", {
  reason: ConnectionReason,
  ...details,
  /** True where an established connection was lost before any row had arrived: a read may then be tried again. */
  beforeFirstRow: Schema.optionalWith(Schema.Boolean, { exact: true })
}) {}

/** The operation breaks a rule of this server, or the engine itself refused to write. */
export class QueryRejected extends Schema.TaggedError<QueryRejected>()("QueryRejected", {
  reason: RejectedReason,
  ...details
}) {}

/** The engine refused a valid request. */
export class QueryFailed extends Schema.TaggedError<QueryFailed>()("QueryFailed", {
  reason: QueryReason,
  ...details
}) {}

/** The whole failure channel of an adapter. */
export const AdapterFailure = Schema.Union(ConnectionFailed, QueryFailed, QueryRejected)
export type AdapterFailure = typeof AdapterFailure.Type

/** One fault of the arguments: where, what was expected, what came. */
export const InputIssue = Schema.Struct({
  path: Schema.String,
  reason: InputReason,
  expected: Schema.String,
  received: Schema.String
})
export type InputIssue = typeof InputIssue.Type

/** The arguments do not fit the tool's schema; the engine was not touched. */
export class InvalidInput extends Schema.TaggedError<InvalidInput>()("InvalidInput", {
  reason: InputReason,
  message: Schema.String,
  hint: Schema.optionalWith(Schema.String, { exact: true }),
  issues: Schema.NonEmptyArray(InputIssue)
}) {}

/** Every typed failure of a tool call. */
export type QueryError = AdapterFailure | InvalidInput

const lasting: ReadonlySet<ConnectionReason> = new Set<ConnectionReason>([
  "authentication",
  "tls",
  "database_not_found",
  "file_not_found",
  "file_unreadable"
])

/** Whether the same call may succeed when it is sent again unchanged. */
export const isRetryable = (error: QueryError): boolean => {
  switch (error._tag) {
    case "ConnectionFailed":
      return !lasting.has(error.reason)
    case "QueryRejected":
      return error.reason === "overloaded"
    case "QueryFailed":
      return error.reason === "lock_timeout"
    // Nothing is sent again by default.
    default:
      return false
  }
}

/** The public sentence of each `connection_failed` reason; file reasons are worded by the adapter that met them. */
export const connectionMessage: Record<
  Exclude<ConnectionReason, "file_not_found" | "file_unreadable">,
  string
> = {
  refused: "The data source refuses connections.",
  timeout: "The data source did not answer in time.",
  dns: "The data source's host name cannot be resolved.",
  authentication: "The data source does not accept this server's login.",
  tls: "No secure connection to the data source could be agreed on.",
  database_not_found: "The database does not exist on the data source.",
  too_many_connections: "The data source has no free connection.",
  closed: "The connection to the data source was lost."
}
