/** From the outcome of a call to what the client receives. The five public categories are told apart here. */
import * as Cause from "effect/Cause"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import { clip } from "../Clip.js"
import type { Category, ErrorAnswer, PublicError } from "../PublicError.js"
import { isRetryable, type QueryError } from "../QueryError.js"
import type { ToolAnswer } from "../Tool.js"

/** An MCP result as it goes out: one text block, and the same facts as structured content where that is on. */
export interface CallResult {
  readonly content: readonly [{ readonly type: "text"; readonly text: string }]
  readonly structuredContent?: object
  readonly isError?: true
  /** The SDK's result types are open. */
  readonly [key: string]: unknown
}

/** What the log says of a failure. */
export interface Failure {
  readonly category: Category
  readonly reason: string
  readonly cause?: unknown
}

export interface Response {
  readonly result: CallResult
  /** The same as in the result of a call that failed. */
  readonly error?: PublicError
  readonly failure?: Failure
}

export interface ResponseOptions {
  readonly correlationId: string
  readonly source: string | undefined
  readonly structuredContent: boolean
  /** Removes known secrets from a text. */
  readonly redact: (text: string) => string
}

/** The category of each tag. A new tag does not compile here until it has one. */
export const categoryOf = (error: QueryError): Category => {
  switch (error._tag) {
    case "InvalidInput":
      return "invalid_input"
    case "ConnectionFailed":
      return "connection_failed"
    case "QueryRejected":
      return "query_rejected"
    case "QueryFailed":
      return "query_failed"
  }
}

/** An engine may repeat the statement in its message; a reader needs to recognise the place, not to get it all back. */
const longestText = 2000

const failed = (error: PublicError): Pick<Response, "result" | "error"> => {
  const answer: ErrorAnswer = { error }
  return { result: { isError: true, content: [{ type: "text", text: JSON.stringify(answer) }] }, error }
}

const ofError = (error: QueryError, { correlationId, redact, source }: ResponseOptions): Response => {
  const category = categoryOf(error)
  return {
    ...failed({
      category,
      reason: error.reason,
      message: clip(redact(error.message), longestText),
      ...(error.hint === undefined ? {} : { hint: clip(redact(error.hint), longestText) }),
      retryable: isRetryable(error),
      ...(source === undefined ? {} : { source }),
      correlationId,
      ...("engine" in error && error.engine !== undefined ? { engine: error.engine } : {}),
      ...(error._tag === "InvalidInput" ? { issues: error.issues } : {})
    }),
    failure: {
      category,
      reason: error.reason,
      ...("cause" in error && error.cause !== undefined ? { cause: error.cause } : {})
    }
  }
}

/** A defect says nothing but where to look. */
const ofDefect = (defect: unknown, { correlationId, source }: ResponseOptions): Response => ({
  ...failed({
    category: "internal_error",
    reason: "unexpected",
    message:
      "An unforeseen fault ended this call. The server's log has the details under the correlation id.",
    retryable: false,
    ...(source === undefined ? {} : { source }),
    correlationId
  }),
  failure: { category: "internal_error", reason: "unexpected", cause: defect }
})

const ofAnswer = ({ value }: ToolAnswer, options: ResponseOptions): Response => {
  const content = [{ type: "text", text: JSON.stringify(value) }] as const
  return { result: options.structuredContent ? { content, structuredContent: value } : { content } }
}

/** `Option.none` for a call that was cancelled: it gets no answer. */
export const fromExit = (
  exit: Exit.Exit<ToolAnswer, QueryError>,
  options: ResponseOptions
): Option.Option<Response> => {
  if (Exit.isSuccess(exit)) {
    try {
      return Option.some(ofAnswer(exit.value, options))
    } catch (defect) {
      return Option.some(ofDefect(defect, options))
    }
  }
  const failure = Cause.failureOption(exit.cause)
  if (Option.isSome(failure)) return Option.some(ofError(failure.value, options))
  if (Cause.isInterruptedOnly(exit.cause)) return Option.none()
  return Option.some(ofDefect(Cause.squash(exit.cause), options))
}
