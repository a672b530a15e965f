/** SQLite's failure table: what the child process reports → the typed failure of the call. */
import {
  type AdapterFailure,
  ConnectionFailed,
  QueryFailed,
  type QueryReason,
  QueryRejected
} from "../../QueryError.js"
import type { Refusal } from "./Protocol.js"

/** What the messages call the file, and what to do when it cannot be read. */
export interface FileWords {
  readonly what: string
  readonly advice: string
}

export const databaseWords: FileWords = {
  what: "database file",
  advice: "Check that the source names an SQLite database."
}

/** The first pattern that matches an SQLITE_ERROR's message names its reason. */
export const byMessage: ReadonlyArray<readonly [RegExp, QueryReason]> = [
  [/^no such table\b|^no such view\b|^unknown database\b|^no such module\b/i, "unknown_table"],
  [/^no such (column|index)\b|^table .* has no column named|ORDER BY term does not match/i, "unknown_column"],
  [/^no such function\b|^wrong number of arguments to function\b|^unknown function\b/i, "unknown_function"],
  [/^cannot join using column\b/i, "unknown_column"],
  [/^variable number must be\b/i, "parameters"],
  [/^ambiguous column name\b/i, "ambiguous_name"],
  [/syntax error|^incomplete input|^unrecognized token/i, "syntax"],
  [/overflow|out of range/i, "out_of_range"],
  [
    /^too many\b|^at most \d+ tables|too big|too large|^parser stack overflow|stack overflow|depth|terms in compound|recursion|^out of memory/i,
    "resource_limit"
  ],
  [/^datatype mismatch|mismatch/i, "type_mismatch"],
  [/^not authorized|^access to .* is prohibited|unsafe use of/i, "permission_denied"]
]

/** Most limits of the parser say "too many" or "depth", so they are asked before "overflow". */
const reasonOfMessage = (message: string): QueryReason => {
  if (/^parser stack overflow|Expression tree is too large|stack overflow/i.test(message))
    return "resource_limit"
  return byMessage.find(([pattern]) => pattern.test(message))?.[1] ?? "engine_error"
}

const queryReasonByCode: ReadonlyMap<string, QueryReason> = new Map<string, QueryReason>([
  ["SQLITE_BUSY", "lock_timeout"],
  ["SQLITE_LOCKED", "lock_timeout"],
  ["SQLITE_TOOBIG", "resource_limit"],
  ["SQLITE_NOMEM", "resource_limit"],
  ["SQLITE_FULL", "resource_limit"],
  ["SQLITE_MISMATCH", "type_mismatch"],
  ["SQLITE_RANGE", "parameters"],
  ["SQLITE_CONSTRAINT", "constraint"],
  ["SQLITE_AUTH", "permission_denied"],
  ["SQLITE_PERM", "permission_denied"],
  ["SQLITE_INTERRUPT", "timeout"]
])

/** `SQLITE_BUSY_SNAPSHOT` → `SQLITE_BUSY` */
const primary = (code: string) => code.split("_").slice(0, 2).join("_")

const unreadable = ({ advice, what }: FileWords, why: string, cause: Refusal) =>
  new ConnectionFailed({
    reason: "file_unreadable",
    message: `The ${what} cannot be read: ${why}`,
    hint: advice,
    cause
  })

const notFound = ({ what }: FileWords, cause: Refusal) =>
  new ConnectionFailed({
    reason: "file_not_found",
    message: `The ${what} does not exist.`,
    hint: "Check the path in the server's configuration.",
    cause
  })

/** Errors that say something about the file, wherever they are met. */
const ofFile = (refusal: Refusal, words: FileWords): AdapterFailure | undefined => {
  const { code, message, stage } = refusal
  switch (code) {
    case "ENOENT":
    case "ENOTDIR":
      return notFound(words, refusal)
    case "EISDIR":
      return unreadable(words, "it is a folder.", refusal)
    case "NOT_A_FILE":
      return unreadable(words, "it is no regular file.", refusal)
    case "EACCES":
    case "EPERM":
      return unreadable(words, "the server may not read it.", refusal)
    case "WAL_PENDING":
    case "WAL_TOO_LARGE":
      return unreadable(words, `${message.charAt(0).toLowerCase()}${message.slice(1)}`, refusal)
  }
  if (code === "SQLITE_READONLY_ROLLBACK" || code === "SQLITE_READONLY_RECOVERY")
    return new ConnectionFailed({
      reason: "file_unreadable",
      message: `The ${words.what} cannot be read: a write to it was interrupted, and it has to be recovered first.`,
      hint: "Open it once with a program that may write to it, say the sqlite3 shell, and read a table.",
      cause: refusal
    })
  switch (primary(code)) {
    case "SQLITE_NOTADB":
      return unreadable(words, "it is not an SQLite database, or it is encrypted.", refusal)
    case "SQLITE_CANTOPEN":
    case "SQLITE_READONLY":
      // Met while reading: the lock files of a WAL database cannot be made or recovered.
      if (stage !== "run" || code !== "SQLITE_READONLY")
        return unreadable(words, "it cannot be opened for reading.", refusal)
      return undefined
    case "SQLITE_CORRUPT":
    case "SQLITE_IOERR":
    case "SQLITE_PROTOCOL":
    case "SQLITE_NOLFS":
      if (stage === "run" && primary(code) !== "SQLITE_IOERR") return undefined
      return unreadable(words, "it is damaged or cut off.", refusal)
  }
  return undefined
}

const rejected = (reason: QueryRejected["reason"], message: string, hint: string, cause: Refusal) =>
  new QueryRejected({ reason, message, hint, cause })

const ownRefusal = (refusal: Refusal): AdapterFailure | undefined => {
  switch (refusal.code) {
    case "WRITES":
      return rejected(
        "read_only",
        "This source is read-only; the statement would write.",
        "Send a SELECT.",
        refusal
      )
    case "NO_ROWS":
      return rejected(
        "statement_type",
        "Only statements that return rows are run here.",
        "Send a SELECT, VALUES, WITH … SELECT or EXPLAIN QUERY PLAN.",
        refusal
      )
    case "NUL":
      return new QueryFailed({
        reason: "syntax",
        message: "The statement holds a NUL character.",
        hint: "Pass text that holds NUL as a parameter.",
        cause: refusal
      })
    case "PARAMETER_COUNT":
    case "NAMED_PARAMETER":
      return new QueryFailed({
        reason: "parameters",
        message: refusal.message,
        hint: "Write ? or ?1, ?2, … and give one value for each in `params`.",
        cause: refusal
      })
  }
  return undefined
}

/** better-sqlite3's own complaints have no SQLite code. */
const driverRefusal = (refusal: Refusal): AdapterFailure | undefined => {
  const { code, message } = refusal
  if (/more than one statement/i.test(message))
    return rejected(
      "multiple_statements",
      "Only one statement may be sent in a call.",
      "Send each statement in a call of its own.",
      refusal
    )
  if (/contains no statements/i.test(message))
    return new QueryFailed({ reason: "syntax", message: "The text holds no statement.", cause: refusal })
  if (code === "TypeError" && /directory does not exist/i.test(message))
    return notFound(databaseWords, refusal)
  if (code === "RangeError" && /parameter/i.test(message))
    return new QueryFailed({ reason: "parameters", message, cause: refusal })
  if (
    /string length|Invalid string|too (large|big|long)|0x1fffffe8/i.test(message) &&
    !code.startsWith("SQLITE_")
  )
    return new QueryFailed({
      reason: "resource_limit",
      message: "A value is too large to be read.",
      hint: "Select a part of it, say with substr().",
      cause: refusal
    })
  return undefined
}

export const toFailure = (refusal: Refusal, words: FileWords = databaseWords): AdapterFailure => {
  const known = ownRefusal(refusal) ?? ofFile(refusal, words) ?? driverRefusal(refusal)
  if (known !== undefined) return known
  const { code, message } = refusal
  const engine = { code: code.startsWith("SQLITE_") ? code : "SQLITE_ERROR" }
  if (primary(code) === "SQLITE_READONLY")
    return new QueryRejected({
      reason: "read_only",
      message: "This source is read-only; the engine refused to write.",
      engine,
      cause: refusal
    })
  const reason = code === "SQLITE_ERROR" || !code.startsWith("SQLITE_") ? reasonOfMessage(message) : undefined
  return new QueryFailed({
    reason: reason ?? queryReasonByCode.get(primary(code)) ?? reasonOfMessage(message),
    message,
    engine,
    cause: refusal
  })
}
