/**
 * PostgreSQL's and its driver's errors as failures. Three pure tables: an error while connecting, a lost session, and
 * the engine's refusal of a statement. Which of them applies is decided by what happened to the session, never by an
 * SQLSTATE alone: a function may raise any code it likes.
 */
import {
  type AdapterFailure,
  ConnectionFailed,
  type ConnectionReason,
  connectionMessage,
  QueryFailed,
  type QueryReason,
  QueryRejected
} from "../../QueryError.js"

/** The fields of an error of the engine that are looked at. */
export interface EngineError {
  readonly message: string
  readonly severity?: string | undefined
  readonly code?: string | undefined
  readonly hint?: string | undefined
  readonly position?: string | undefined
  readonly routine?: string | undefined
}

const field = (error: object, name: string): string | undefined => {
  const value: unknown = Reflect.get(error, name)
  return typeof value === "string" ? value : undefined
}

/** The engine's own error, or null for one of the driver or the network. */
export const engineError = (error: unknown): EngineError | null => {
  if (!(error instanceof Error)) return null
  const severity = field(error, "severity")
  const code = field(error, "code")
  if (severity === undefined || code === undefined) return null
  return {
    message: error.message,
    severity,
    code,
    hint: field(error, "hint"),
    position: field(error, "position"),
    routine: field(error, "routine")
  }
}

// --- Connecting ------------------------------------------------------------------------------------------------------

/** By SQLSTATE; class 28 is `authentication`, any other `closed`. */
export const connectionStates: Record<string, ConnectionReason> = {
  "3D000": "database_not_found",
  "42501": "authentication", // no right to connect to the database
  "53300": "too_many_connections",
  "53400": "too_many_connections",
  "57P01": "closed",
  "57P02": "closed",
  "57P03": "closed"
}

/** By the code of Node's sockets and resolver. */
export const systemCodes: Record<string, ConnectionReason> = {
  ECONNREFUSED: "refused",
  EHOSTUNREACH: "refused",
  EHOSTDOWN: "refused",
  ENETUNREACH: "refused",
  EADDRNOTAVAIL: "refused",
  ENOENT: "refused", // the path of a socket
  EACCES: "refused",
  ENOTFOUND: "dns",
  ENODATA: "dns",
  EAI_AGAIN: "dns",
  EAI_FAIL: "dns",
  EAI_NONAME: "dns",
  ETIMEDOUT: "timeout",
  ECONNRESET: "closed",
  ECONNABORTED: "closed",
  EPIPE: "closed",
  EPROTO: "tls"
}

const tlsCode =
  /^(ERR_TLS|ERR_SSL|ERR_OSSL|CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH_EXCEEDED)/

/** The driver's own errors have no code; these are their texts in the pinned version. */
const driverTexts: ReadonlyArray<readonly [RegExp, ConnectionReason]> = [
  [/timeout/i, "timeout"],
  [/^(The server does not support SSL|There was an error establishing an SSL)/, "tls"],
  [/^SASL|^Password must be a string|channel binding/i, "authentication"]
]

/** Why no session could be opened. */
export const connectionReason = (error: unknown): ConnectionReason => {
  const engine = engineError(error)
  if (engine !== null) {
    const code = engine.code ?? ""
    return code.startsWith("28") ? "authentication" : (connectionStates[code] ?? "closed")
  }
  if (error instanceof AggregateError && error.errors.length > 0) return connectionReason(error.errors.at(-1))
  if (!(error instanceof Error)) return "closed"
  const code = field(error, "code") ?? ""
  if (tlsCode.test(code)) return "tls"
  return systemCodes[code] ?? driverTexts.find(([pattern]) => pattern.test(error.message))?.[1] ?? "closed"
}

/** An error of the driver while it opened a session. */
export const connecting = (error: unknown): ConnectionFailed => {
  const reason = connectionReason(error)
  const code = engineError(error)?.code
  return new ConnectionFailed({
    reason,
    message:
      reason === "file_not_found" || reason === "file_unreadable"
        ? connectionMessage.closed
        : connectionMessage[reason],
    ...(code === undefined ? {} : { engine: { code } }),
    cause: error
  })
}

/** A session that ended while it was in use. */
export const lost = (error: unknown, beforeFirstRow: boolean): ConnectionFailed | QueryFailed => {
  const engine = engineError(error)
  // The engine ends the session of a transaction that outlasts transaction_timeout; trying again would last as long.
  if (engine?.severity === "FATAL" && engine.code === "25P04") {
    return new QueryFailed({
      reason: "timeout",
      message: engine.message,
      engine: { code: engine.code },
      cause: error
    })
  }
  return new ConnectionFailed({
    reason: "closed",
    message: connectionMessage.closed,
    ...(engine?.code === undefined ? {} : { engine: { code: engine.code } }),
    beforeFirstRow,
    cause: error
  })
}

// --- Statements ------------------------------------------------------------------------------------------------------

/** By SQLSTATE; a class (two characters) stands for its codes that are not listed. */
export const states: Record<string, QueryReason> = {
  "08P01": "parameters", // a bind message with too few or too many
  "22001": "out_of_range",
  "22003": "out_of_range",
  "22007": "type_mismatch",
  "22008": "out_of_range",
  "22009": "out_of_range",
  "22012": "division_by_zero",
  "22015": "out_of_range",
  "22026": "type_mismatch",
  "22032": "type_mismatch",
  "2200M": "type_mismatch",
  "2200N": "type_mismatch",
  "22P02": "type_mismatch",
  "22P03": "type_mismatch",
  "23": "constraint",
  "25P03": "timeout",
  "25P04": "timeout",
  "3F000": "unknown_table",
  "40001": "lock_timeout", // on a standby: the statement stood in the way of replication
  "40P01": "lock_timeout",
  "42501": "permission_denied",
  "42601": "syntax",
  "42602": "syntax",
  "42622": "syntax",
  "42702": "ambiguous_name",
  "42703": "unknown_column",
  "42712": "ambiguous_name",
  "42725": "ambiguous_name",
  "42804": "type_mismatch",
  "42846": "type_mismatch",
  "42883": "unknown_function",
  "42P01": "unknown_table",
  "42P02": "parameters",
  "42P08": "parameters",
  "42P09": "ambiguous_name",
  "42P10": "unknown_column",
  "42P18": "parameters",
  "42P22": "type_mismatch",
  "42P38": "type_mismatch",
  "53": "resource_limit",
  "54": "resource_limit",
  "55P03": "lock_timeout",
  "57014": "timeout"
}

/** Where the same SQLSTATE has two meanings, the engine's routine tells them apart, in every language. */
const routines: ReadonlyArray<readonly [code: RegExp, routine: RegExp, QueryReason]> = [
  [/^42883$/, /^op_error$/, "type_mismatch"],
  [/^42P18$/, /^transformArrayExpr|^enforce_generic/, "type_mismatch"],
  [/^22023$/, /decode|_in$/, "type_mismatch"],
  // In the text of a string, not in a pattern.
  [/^22025$/, /yylex|yyerror/, "syntax"],
  // DISTINCT that does not fit ORDER BY, and aliases that are too many: every column exists.
  [/^42P10$/, /^(transformDistinct|addRangeTable|buildRelationAliases)/, "engine_error"],
  [/^54000$/, /^chr$/, "engine_error"],
  [/^XX000$/, /^(MemoryContext|Alloc|palloc|repalloc|enlargeStringInfo)/, "resource_limit"]
]

export const reasonOf = ({ code = "", routine = "" }: EngineError): QueryReason => {
  // Raised by user code, whatever SQLSTATE it chose.
  if (routine === "exec_stmt_raise") return "engine_error"
  const special = routines.find(([codes, names]) => codes.test(code) && names.test(routine))
  return special?.[2] ?? states[code] ?? states[code.slice(0, 2)] ?? "engine_error"
}

/** What an answer must not repeat, unless the caller said it. */
export interface Confidential {
  readonly password: string | undefined
  readonly names: ReadonlyArray<string>
}

const escapeRegExp = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")

/** Addresses with a login, and connection strings, as a function may report them; a value in quotes may be cut off. */
const connectionText =
  /\b[a-z][a-z0-9+.-]{0,60}:\/\/[^\s"'/@]*@[^\s"']+|\b(?:password|passwd|pwd|host|hostaddr|user|port)=(?:'[^']*(?:'|$)|[^\s"',;)]+)/gi

/** An address that was cut before it said whether it holds a login. */
const begunAddress = /\b[a-z][a-z0-9+.-]{0,60}:\/\/[^\s"'/@]*$/i

/** A message may repeat a value of any size; an answer has less of it than this. */
const longestText = 8000

/** What the caller said is looked through for each address and path of a message; so much of it is. */
const longestSaid = 200_000

/** Without the beginning of a name at its end, where a text was cut. */
const withoutBegun = (text: string, name: string): string => {
  for (let length = name.length - 1; length > 2; length--)
    if (text.endsWith(name.slice(0, length))) return text.slice(0, -length)
  return text
}

/** Of the machine, and of the data folder. */
const path =
  /(?<![\w.])(?:\/[\w.+-]+){2,}\/?|\b(?:base|global|pg_tblspc)(?:\/[\w.-]+)+|\b[A-Za-z]:\\[^\s"']+/g

const quoted = /(["»«„“‹「])([^"»«„“”‹›「」]*)(["«»”“›」])/g

/**
 * The engine's sentence without the password, and without the login, addresses and paths of the server that the caller
 * did not name. The engine quotes names, in each language in its own way; a function may not.
 */
export const publicText = (text: string, said: string, { password, names }: Confidential): string => {
  let result = text
  if (text.length > longestText) {
    result = text.slice(0, longestText)
    for (const name of [...names, ...(password === undefined ? [] : [password])])
      result = withoutBegun(result, name)
    result = result.replace(begunAddress, "")
  }
  if (password !== undefined && password.length > 3) result = result.replaceAll(password, "…")
  for (const name of names) {
    if (said.includes(name)) continue
    const bare = escapeRegExp(name)
    result = result.replace(new RegExp(`(["'»«„“”‘’‹›「])${bare}(?=["'»«„“”‘’‹›」])`, "g"), "$1…")
    if (/[.:]/.test(name)) result = result.replaceAll(name, "…")
    // A shorter one may be part of the engine's own words.
    else if (name.length > 3) {
      result = result.replace(new RegExp(`(?<![\\p{L}\\p{N}_])${bare}(?![\\p{L}\\p{N}_])`, "gu"), "…")
    }
  }
  const unsaid = (found: string) => (said.includes(found) ? found : "…")
  return result
    .replace(/…:\d{1,5}\b/g, "…")
    .replace(connectionText, unsaid)
    .replace(path, unsaid)
}

export interface StatementContext {
  /** The statement and its parameters, as far as a message may repeat them. */
  readonly said: string
  /** Characters in front of the caller's statement in what was sent. */
  readonly prefix: number
  /** It had run for as long as it may. */
  readonly timedOut: boolean
  readonly confidential: Confidential
}

/** The engine's refusal of a statement, in a session that goes on. */
export const refused = (
  error: unknown,
  { said: everything, prefix, timedOut, confidential }: StatementContext
): QueryFailed | QueryRejected => {
  const said = everything.slice(0, longestSaid)
  const engine = engineError(error)
  if (engine === null) {
    return new QueryFailed({
      reason: "engine_error",
      message: "The statement could not be carried out.",
      cause: error
    })
  }
  const { code = "", routine = "" } = engine
  const position = Number(engine.position) - prefix
  const spoken = publicText(engine.message, said, confidential)
  const details = {
    // What an error of the system names is a file, a program or a library, with or without a folder.
    message: code.startsWith("58")
      ? spoken.replace(quoted, (whole, open, name, close) =>
          said.includes(name) ? whole : `${open}…${close}`
        )
      : spoken,
    engine: { code, ...(position > 0 ? { position } : {}) },
    cause: error
  }
  if (code === "42601" && routine === "exec_parse_message") {
    return new QueryRejected({ ...details, reason: "multiple_statements" })
  }
  if (code === "25006" && routine !== "exec_stmt_raise") {
    return new QueryRejected({
      ...details,
      reason: "read_only",
      hint: "This source is read-only; a function or view that the statement uses writes."
    })
  }
  // The engine says the same when somebody else cancels the statement.
  const cancelled = code === "57014" && !timedOut
  const reason = cancelled ? "engine_error" : reasonOf(engine)
  const hint = engine.hint === undefined ? undefined : publicText(engine.hint, said, confidential)
  return new QueryFailed({ ...details, reason, ...(hint === undefined ? {} : { hint }) })
}

/** A value or row that is larger than what is read from the engine. */
export const oversized = (limit: number): AdapterFailure =>
  new QueryFailed({
    reason: "resource_limit",
    message: `A row of the answer is larger than ${Math.floor(limit / 1_048_576)} MiB, the most that is read.`,
    hint: "Select a part of the large value, for example with substring or length."
  })
