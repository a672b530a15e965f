/**
 * What may be sent to SQLite. The engine itself tells whether a statement writes or returns rows (its adapter asks);
 * this room refuses what is "read-only" in SQLite's eyes and still changes a setting, a session or a file.
 */
import * as Effect from "effect/Effect"
import { type Token, tokens } from "../Adapter/Sqlite/Tokens.js"
import type { Verdict } from "../Dialect.js"
import { QueryRejected } from "../QueryError.js"

/** PRAGMAs that describe and take a name or a number as their argument. */
const descriptive: ReadonlySet<string> = new Set([
  "table_info",
  "table_xinfo",
  "table_list",
  "index_info",
  "index_xinfo",
  "index_list",
  "foreign_key_list",
  "foreign_key_check",
  "integrity_check",
  "quick_check"
])

/** PRAGMAs that only answer when they are given no argument. */
const plain: ReadonlySet<string> = new Set([
  ...descriptive,
  "application_id",
  "auto_vacuum",
  "automatic_index",
  "busy_timeout",
  "cache_size",
  "cache_spill",
  "cell_size_check",
  "collation_list",
  "compile_options",
  "data_version",
  "database_list",
  "defer_foreign_keys",
  "encoding",
  "foreign_keys",
  "freelist_count",
  "function_list",
  "hard_heap_limit",
  "journal_mode",
  "journal_size_limit",
  "legacy_alter_table",
  "locking_mode",
  "max_page_count",
  "mmap_size",
  "module_list",
  "page_count",
  "page_size",
  "pragma_list",
  "query_only",
  "read_uncommitted",
  "recursive_triggers",
  "reverse_unordered_selects",
  "schema_version",
  "secure_delete",
  "soft_heap_limit",
  "synchronous",
  "temp_store",
  "threads",
  "trusted_schema",
  "user_version",
  "wal_autocheckpoint",
  "writable_schema"
])

/** Functions that write, load code, read other files, or set what outlasts the statement. */
const deniedFunctions: ReadonlySet<string> = new Set([
  "edit",
  "eval",
  "fts3_tokenizer",
  "fts5_expr",
  "load_extension",
  "optimize",
  "readfile",
  "sqlar_uncompress",
  "writefile",
  "zipfile",
  "fsdir",
  "lsmode",
  "sqlite_dbpage"
])

/**
 * What shows bytes of this file, or of others, when it is merely named. Table-valued functions of that kind are refused
 * where they are called (`zipfile` names a file only by an argument), since tables and sheets may be called like them.
 */
const deniedTables: ReadonlySet<string> = new Set(["sqlite_dbpage"])

/** PRAGMAs that act even without an argument, or are settings whose table could set them. No other PRAGMA is a table. */
const acting: ReadonlySet<string> = new Set([
  "analysis_limit",
  "case_sensitive_like",
  "checkpoint_fullfsync",
  "count_changes",
  "data_store_directory",
  "default_cache_size",
  "empty_result_callbacks",
  "full_column_names",
  "fullfsync",
  "ignore_check_constraints",
  "incremental_vacuum",
  "key",
  "lock_proxy_file",
  "lock_status",
  "optimize",
  "parser_trace",
  "rekey",
  "short_column_names",
  "shrink_memory",
  "stats",
  "temp_store_directory",
  "vdbe_addoptrace",
  "vdbe_debug",
  "vdbe_listing",
  "vdbe_trace",
  "wal_checkpoint"
])

const writing: ReadonlySet<string> = new Set([
  "insert",
  "replace",
  "update",
  "delete",
  "create",
  "drop",
  "alter",
  "truncate",
  "merge"
])

const readHint = "Send one SELECT, VALUES, WITH … SELECT, EXPLAIN QUERY PLAN or describing PRAGMA."

const reject = (reason: QueryRejected["reason"], message: string, hint = readHint) =>
  Effect.fail(new QueryRejected({ reason, message, hint }))

const isSymbol = (token: Token | undefined, text: string) => token?.kind === "symbol" && token.text === text

const isWord = (token: Token | undefined, text: string) =>
  token?.kind === "word" && token.text.toLowerCase() === text

const nameOf = (token: Token | undefined): string | undefined => {
  if (token === undefined) return undefined
  if (token.kind === "word" || token.kind === "quoted") return token.text.toLowerCase()
  // SQLite takes a string where a name is expected.
  if (token.kind === "string") return token.text.slice(1, -1).replaceAll("''", "'").toLowerCase()
  return undefined
}

/** `name (column, …) AS [[NOT] MATERIALIZED] (`: a common table expression gives its columns, and calls nothing. */
const definesColumns = (list: ReadonlyArray<Token>, index: number): boolean => {
  let at = index + 1
  do {
    if (nameOf(list[at + 1]) === undefined) return false
    at += 2
  } while (isSymbol(list[at], ","))
  if (!isSymbol(list[at++], ")") || !isWord(list[at++], "as")) return false
  if (isWord(list[at], "not")) at++
  if (isWord(list[at], "materialized")) at++
  return isSymbol(list[at], "(")
}

/** The first rule that a name inside the statement breaks. */
const deniedName = (list: ReadonlyArray<Token>): ReturnType<typeof reject> | undefined => {
  // A PRAGMA table takes its argument through the hidden columns `arg` and `schema`, too.
  const usesArgument = list.some((token) => nameOf(token) === "arg")
  for (const [index, token] of list.entries()) {
    const name = nameOf(token)
    if (name === undefined) continue
    const called = isSymbol(list[index + 1], "(") && !definesColumns(list, index)
    if (called && deniedFunctions.has(name))
      return reject("function_denied", `The function ${name}() is not allowed here: it does more than read.`)
    // A string is a name where it is called, and where a table may stand.
    const tableInQuotes = name.startsWith("pragma_") && followsFrom(list, index)
    if (token.kind === "string" && !called && !tableInQuotes) continue
    // `pragma_NAME` is a table: naming it runs the PRAGMA, with arguments in parentheses or in WHERE arg = …
    const pragma = name.startsWith("pragma_") ? name.slice("pragma_".length) : ""
    if (plain.has(pragma) || acting.has(pragma)) {
      const allowed = called ? descriptive.has(pragma) || isSymbol(list[index + 2], ")") : plain.has(pragma)
      const known = descriptive.has(pragma) || (plain.has(pragma) && !usesArgument)
      if (!allowed || !known)
        return reject("function_denied", `The table ${name} is not allowed here: it may change a setting.`)
    }
    if (deniedTables.has(name) && followsFrom(list, index))
      return reject("function_denied", `The table ${name} is not allowed here.`)
  }
  return undefined
}

const followsFrom = (list: ReadonlyArray<Token>, index: number) => {
  let before = list[index - 1]
  if (isSymbol(before, ".")) before = list[index - 3]
  return isSymbol(before, ",") || isSymbol(before, "(") || ["from", "join"].includes(nameOf(before) ?? "")
}

/** `PRAGMA [schema.]name`, followed by nothing, `= value` or `(value)`. */
const inspectPragma = (list: ReadonlyArray<Token>) => {
  const qualified = isSymbol(list[2], ".")
  const name = nameOf(list[qualified ? 3 : 1])
  const rest = list.slice(qualified ? 4 : 2).filter((token) => !isSymbol(token, ";"))
  if (name === undefined) return undefined
  if (rest.length === 0)
    return plain.has(name) ? undefined : reject("statement_type", `PRAGMA ${name} is not allowed here.`)
  if (descriptive.has(name) && (isSymbol(rest[0], "(") || isSymbol(rest[0], "="))) return undefined
  return reject("read_only", `PRAGMA ${name} with a value changes a setting; this source is read-only.`)
}

/** A second statement after a semicolon; SQLite's own parser decides again when it prepares the text. */
const hasSecondStatement = (list: ReadonlyArray<Token>) => {
  const first = list.findIndex((token) => !isSymbol(token, ";"))
  const end = list.findIndex((token, index) => index > first && isSymbol(token, ";"))
  return end >= 0 && list.slice(end).some((token) => !isSymbol(token, ";"))
}

/** What EXPLAIN explains: a PRAGMA acts while it is prepared, so that it must be one that might run by itself. */
const explained = (list: ReadonlyArray<Token>): ReadonlyArray<Token> =>
  isWord(list[0], "explain") ? list.slice(isWord(list[1], "query") && isWord(list[2], "plan") ? 3 : 1) : list

export const inspect = (sql: string): Verdict => {
  const all = [...tokens(sql)]
  // The engine says what is wrong with a text without a statement.
  const whole = all.slice(
    Math.max(
      0,
      all.findIndex((token) => !isSymbol(token, ";"))
    )
  )
  if (hasSecondStatement(whole))
    return reject(
      "multiple_statements",
      "Only one statement may be sent in a call.",
      "Send each statement in a call of its own."
    )
  const list = explained(whole)
  const head = list[0]
  if (head === undefined) return Effect.succeed("execute")
  const verb = head.kind === "word" ? head.text.toLowerCase() : ""
  if (writing.has(verb))
    return reject("read_only", `This source is read-only; ${verb.toUpperCase()} is not allowed.`)
  if (verb === "pragma") return inspectPragma(list) ?? deniedName(list.slice(1)) ?? Effect.succeed("execute")
  if (["select", "values", "with", "explain"].includes(verb))
    return deniedName(list) ?? Effect.succeed("execute")
  // Anything else that begins like a statement is one that sets, attaches, begins or ends something.
  return /^[a-z]+$/.test(verb) && isStatementVerb(verb)
    ? reject("statement_type", `${verb.toUpperCase()} is not allowed here.`)
    : Effect.succeed("execute")
}

const isStatementVerb = (verb: string) =>
  [
    "analyze",
    "attach",
    "begin",
    "commit",
    "detach",
    "end",
    "reindex",
    "release",
    "rollback",
    "savepoint",
    "vacuum"
  ].includes(verb)
