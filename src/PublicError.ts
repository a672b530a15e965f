/** What a client is told of a failed call. */
import * as Schema from "effect/Schema"
import { optional } from "./OptionalField.js"
import { EngineDetail, InputIssue } from "./QueryError.js"

export const Category = Schema.Literal(
  "invalid_input",
  "connection_failed",
  "query_rejected",
  "query_failed",
  "internal_error"
)
export type Category = typeof Category.Type

export const PublicError = Schema.Struct({
  category: Category,
  /** One of the category's reasons in `QueryError`; of an `internal_error`, `unexpected`. */
  reason: Schema.String,
  message: Schema.String,
  /** What can be done about it. */
  hint: optional(Schema.String),
  /** Whether the same call may succeed when it is sent again unchanged. */
  retryable: Schema.Boolean,
  /** The id of the source that was asked. */
  source: optional(Schema.String),
  /** Leads to the log line of the call. */
  correlationId: Schema.String,
  engine: optional(EngineDetail),
  /** Of an `invalid_input`: the faults of the arguments, at most twenty; the message counts the others. */
  issues: optional(Schema.NonEmptyArray(InputIssue))
})
export type PublicError = typeof PublicError.Type

/** The JSON text of a result with `isError`. */
export const ErrorAnswer = Schema.Struct({ error: PublicError })
export type ErrorAnswer = typeof ErrorAnswer.Type
