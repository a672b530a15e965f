import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import { toFailure } from "../../../src/Adapter/Sqlite/Failure.js"
import type { Refusal } from "../../../src/Adapter/Sqlite/Protocol.js"

const refusal = (stage: Refusal["stage"], code: string, message = ""): Refusal => ({ stage, code, message })

type Row = readonly [Refusal["stage"], string, string, string, string]

/** stage, code, message → category, reason */
const table: ReadonlyArray<Row> = [
  // The file system
  ["open", "ENOENT", "no such file", "ConnectionFailed", "file_not_found"],
  ["open", "ENOTDIR", "not a directory", "ConnectionFailed", "file_not_found"],
  [
    "open",
    "TypeError",
    "Cannot open database because the directory does not exist",
    "ConnectionFailed",
    "file_not_found"
  ],
  ["open", "EISDIR", "It is a folder.", "ConnectionFailed", "file_unreadable"],
  ["open", "EACCES", "permission denied", "ConnectionFailed", "file_unreadable"],
  ["open", "EPERM", "not permitted", "ConnectionFailed", "file_unreadable"],
  // What SQLite says of the file
  ["open", "SQLITE_CANTOPEN", "unable to open database file", "ConnectionFailed", "file_unreadable"],
  ["prepare", "SQLITE_CANTOPEN", "unable to open database file", "ConnectionFailed", "file_unreadable"],
  ["prepare", "SQLITE_CANTOPEN_ISDIR", "unable to open database file", "ConnectionFailed", "file_unreadable"],
  ["prepare", "SQLITE_NOTADB", "file is not a database", "ConnectionFailed", "file_unreadable"],
  ["run", "SQLITE_NOTADB", "file is not a database", "ConnectionFailed", "file_unreadable"],
  ["open", "SQLITE_CORRUPT", "database disk image is malformed", "ConnectionFailed", "file_unreadable"],
  ["prepare", "SQLITE_CORRUPT", "database disk image is malformed", "ConnectionFailed", "file_unreadable"],
  ["run", "SQLITE_CORRUPT", "database disk image is malformed", "QueryFailed", "engine_error"],
  ["run", "SQLITE_CORRUPT_VTAB", "database disk image is malformed", "QueryFailed", "engine_error"],
  ["prepare", "SQLITE_IOERR_READ", "disk I/O error", "ConnectionFailed", "file_unreadable"],
  ["run", "SQLITE_IOERR_SHORT_READ", "disk I/O error", "ConnectionFailed", "file_unreadable"],
  ["prepare", "SQLITE_READONLY_CANTINIT", "attempt to write", "ConnectionFailed", "file_unreadable"],
  ["run", "SQLITE_READONLY_RECOVERY", "attempt to write", "ConnectionFailed", "file_unreadable"],
  ["run", "SQLITE_READONLY_DIRECTORY", "attempt to write", "ConnectionFailed", "file_unreadable"],
  // Locks
  ["run", "SQLITE_BUSY", "database is locked", "QueryFailed", "lock_timeout"],
  ["open", "SQLITE_BUSY", "database is locked", "QueryFailed", "lock_timeout"],
  ["prepare", "SQLITE_BUSY_RECOVERY", "database is locked", "QueryFailed", "lock_timeout"],
  ["run", "SQLITE_BUSY_SNAPSHOT", "database is locked", "QueryFailed", "lock_timeout"],
  ["run", "SQLITE_LOCKED", "database table is locked", "QueryFailed", "lock_timeout"],
  ["run", "SQLITE_LOCKED_SHAREDCACHE", "database table is locked", "QueryFailed", "lock_timeout"],
  // Rules
  ["run", "SQLITE_READONLY", "attempt to write a readonly database", "QueryRejected", "read_only"],
  ["prepare", "WRITES", "The statement would write.", "QueryRejected", "read_only"],
  ["prepare", "NO_ROWS", "The statement returns no rows.", "QueryRejected", "statement_type"],
  [
    "prepare",
    "RangeError",
    "The supplied SQL string contains more than one statement",
    "QueryRejected",
    "multiple_statements"
  ],
  // Statements
  ["prepare", "RangeError", "The supplied SQL string contains no statements", "QueryFailed", "syntax"],
  ["prepare", "NUL", "The statement holds a NUL character.", "QueryFailed", "syntax"],
  ["prepare", "SQLITE_ERROR", 'near "from": syntax error', "QueryFailed", "syntax"],
  ["prepare", "SQLITE_ERROR", "incomplete input", "QueryFailed", "syntax"],
  ["prepare", "SQLITE_ERROR", 'unrecognized token: "#"', "QueryFailed", "syntax"],
  ["prepare", "SQLITE_ERROR", "no such table: users", "QueryFailed", "unknown_table"],
  ["prepare", "SQLITE_ERROR", "no such table: main.users", "QueryFailed", "unknown_table"],
  ["prepare", "SQLITE_ERROR", "unknown database x", "QueryFailed", "unknown_table"],
  ["prepare", "SQLITE_ERROR", "no such column: nme", "QueryFailed", "unknown_column"],
  [
    "prepare",
    "SQLITE_ERROR",
    "1st ORDER BY term does not match any column in the result set",
    "QueryFailed",
    "unknown_column"
  ],
  [
    "prepare",
    "SQLITE_ERROR",
    "cannot join using column a - column not present in both tables",
    "QueryFailed",
    "unknown_column"
  ],
  ["prepare", "SQLITE_ERROR", "variable number must be between ?1 and ?32766", "QueryFailed", "parameters"],
  ["prepare", "SQLITE_ERROR", "no such function: f", "QueryFailed", "unknown_function"],
  [
    "prepare",
    "SQLITE_ERROR",
    "wrong number of arguments to function lower()",
    "QueryFailed",
    "unknown_function"
  ],
  ["prepare", "SQLITE_ERROR", "ambiguous column name: id", "QueryFailed", "ambiguous_name"],
  ["run", "SQLITE_ERROR", "integer overflow", "QueryFailed", "out_of_range"],
  ["prepare", "SQLITE_ERROR", "too many columns in result set", "QueryFailed", "resource_limit"],
  ["prepare", "SQLITE_ERROR", "too many terms in compound SELECT", "QueryFailed", "resource_limit"],
  ["prepare", "SQLITE_ERROR", "at most 64 tables in a join", "QueryFailed", "resource_limit"],
  [
    "prepare",
    "SQLITE_ERROR",
    "Expression tree is too large (maximum depth 1000)",
    "QueryFailed",
    "resource_limit"
  ],
  ["prepare", "SQLITE_ERROR", "parser stack overflow", "QueryFailed", "resource_limit"],
  ["run", "SQLITE_TOOBIG", "string or blob too big", "QueryFailed", "resource_limit"],
  ["run", "SQLITE_NOMEM", "out of memory", "QueryFailed", "resource_limit"],
  ["run", "SQLITE_FULL", "database or disk is full", "QueryFailed", "resource_limit"],
  [
    "run",
    "Error",
    "Cannot create a string longer than 0x1fffffe8 characters",
    "QueryFailed",
    "resource_limit"
  ],
  ["run", "SQLITE_MISMATCH", "datatype mismatch", "QueryFailed", "type_mismatch"],
  ["run", "SQLITE_CONSTRAINT_UNIQUE", "UNIQUE constraint failed", "QueryFailed", "constraint"],
  ["run", "SQLITE_AUTH", "not authorized", "QueryFailed", "permission_denied"],
  [
    "prepare",
    "SQLITE_ERROR",
    "not authorized to use function: load_extension",
    "QueryFailed",
    "permission_denied"
  ],
  ["run", "SQLITE_INTERRUPT", "interrupted", "QueryFailed", "timeout"],
  ["bind", "PARAMETER_COUNT", "The statement asks for 2 parameters, 1 given.", "QueryFailed", "parameters"],
  ["bind", "NAMED_PARAMETER", "The parameter :a has a name.", "QueryFailed", "parameters"],
  ["bind", "RangeError", "Too few parameter values were provided", "QueryFailed", "parameters"],
  ["bind", "SQLITE_RANGE", "column index out of range", "QueryFailed", "parameters"],
  ["run", "SQLITE_ERROR", "malformed JSON", "QueryFailed", "engine_error"],
  ["run", "SQLITE_ERROR", "", "QueryFailed", "engine_error"],
  ["run", "SQLITE_MISUSE", "bad parameter or other API misuse", "QueryFailed", "engine_error"],
  ["run", "UNKNOWN", "something else", "QueryFailed", "engine_error"]
]

describe("the failure table", () => {
  it.each(table)("%s %s %s → %s %s", (stage, code, message, category, reason) => {
    const failure = toFailure(refusal(stage, code, message))
    expect({ category: failure._tag, reason: failure.reason }).toEqual({ category, reason })
    expect(failure.message).not.toBe(message === "" ? undefined : "")
  })

  it("an engine's refusal keeps its sentence and the extended code", () => {
    expect(toFailure(refusal("prepare", "SQLITE_ERROR", "no such table: t"))).toMatchObject({
      message: "no such table: t",
      engine: { code: "SQLITE_ERROR" }
    })
    expect(toFailure(refusal("run", "SQLITE_BUSY_SNAPSHOT", "database is locked"))).toMatchObject({
      engine: { code: "SQLITE_BUSY_SNAPSHOT" }
    })
  })

  it("a connection's failure says nothing that the driver said", () => {
    for (const [stage, code, , category] of table) {
      if (category !== "ConnectionFailed" || code === "TypeError") continue
      const failure = toFailure(refusal(stage, code, "/home/ada/secret.db is odd"))
      expect(`${failure.message} ${failure.hint}`).not.toContain("ada")
      expect(failure.cause).toMatchObject({ code })
    }
  })

  it("has a failure for whatever a child may report", () => {
    const stage = fc.constantFrom("open", "prepare", "bind", "run") as fc.Arbitrary<Refusal["stage"]>
    const code = fc.oneof(
      fc.string(),
      fc.constantFrom(...table.map((row) => row[1])),
      fc.string().map((text) => `SQLITE_${text}`)
    )
    fc.assert(
      fc.property(stage, code, fc.string(), (stage, code, message) => {
        const failure = toFailure({ stage, code, message })
        expect(["ConnectionFailed", "QueryFailed", "QueryRejected"]).toContain(failure._tag)
        if (failure._tag !== "ConnectionFailed" && failure.engine?.code !== undefined)
          expect(failure.engine.code).toMatch(/^SQLITE_/)
      })
    )
  })
})
