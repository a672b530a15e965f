import { describe, expect, it } from "@effect/vitest"
import {
  connecting,
  connectionReason,
  lost,
  publicText,
  reasonOf,
  refused
} from "../../../src/Adapter/Postgres/Failure.js"

const engine = (code: string, more: Record<string, string> = {}) =>
  Object.assign(new Error("the engine's words"), { severity: "ERROR", code, ...more })
const fatal = (code: string) => engine(code, { severity: "FATAL" })
const system = (code: string) => Object.assign(new Error("the system's words"), { code })

describe("connecting", () => {
  it.each([
    [system("ECONNREFUSED"), "refused"],
    [new AggregateError([system("ECONNREFUSED"), system("ETIMEDOUT")]), "timeout"],
    [system("ENOTFOUND"), "dns"],
    [system("EAI_AGAIN"), "dns"],
    [new Error("timeout expired"), "timeout"],
    [new Error("timeout exceeded when trying to connect"), "timeout"],
    [new Error("Connection terminated due to connection timeout"), "timeout"],
    [fatal("28P01"), "authentication"],
    [fatal("28000"), "authentication"],
    [fatal("42501"), "authentication"],
    [new Error("SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string"), "authentication"],
    [new Error("The server does not support SSL connections"), "tls"],
    [system("DEPTH_ZERO_SELF_SIGNED_CERT"), "tls"],
    [system("ERR_TLS_CERT_ALTNAME_INVALID"), "tls"],
    [system("CERT_HAS_EXPIRED"), "tls"],
    [fatal("3D000"), "database_not_found"],
    [fatal("53300"), "too_many_connections"],
    [fatal("57P03"), "closed"],
    [new Error("Connection terminated unexpectedly"), "closed"],
    [system("ECONNRESET"), "closed"],
    [undefined, "closed"]
  ] as const)("%s is %s", (error, reason) => {
    expect(connectionReason(error)).toBe(reason)
    const failure = connecting(error)
    expect(failure.message).not.toContain("words")
    expect(failure.cause).toBe(error)
  })
})

describe("a lost session", () => {
  it("may be tried again before its first row", () => {
    expect(lost(fatal("57P01"), true)).toMatchObject({ reason: "closed", beforeFirstRow: true })
    expect(lost(new Error("read ECONNRESET"), false)).toMatchObject({
      reason: "closed",
      beforeFirstRow: false
    })
  })
  it("is a timeout where the engine ends the session for its length", () => {
    expect(lost(fatal("25P04"), true)).toMatchObject({ _tag: "QueryFailed", reason: "timeout" })
  })
})

const context = {
  said: "select 1",
  prefix: 0,
  timedOut: true,
  confidential: { password: undefined, names: [] }
}

describe("a refused statement", () => {
  it.each([
    ["42601", "scanner_yyerror", "syntax"],
    ["42P01", "parserOpenTable", "unknown_table"],
    ["42703", "errorMissingColumn", "unknown_column"],
    ["42883", "ParseFuncOrColumn", "unknown_function"],
    ["42883", "op_error", "type_mismatch"],
    ["42702", "colNameToVar", "ambiguous_name"],
    ["42501", "aclcheck_error", "permission_denied"],
    ["22P02", "pg_strtoint32_safe", "type_mismatch"],
    ["22023", "hex_decode_safe", "type_mismatch"],
    ["22023", "generate_series_step_int4", "engine_error"],
    ["22025", "core_yylex", "syntax"],
    ["22025", "UTF8_MatchText", "engine_error"],
    ["42P10", "findTargetlistEntrySQL92", "unknown_column"],
    ["42P10", "transformDistinctClause", "engine_error"],
    ["42P10", "addRangeTableEntryForSubquery", "engine_error"],
    ["22012", "int4div", "division_by_zero"],
    ["22003", "int4pl", "out_of_range"],
    ["23514", "ExecEvalConstraintCheck", "constraint"],
    ["08P01", "exec_bind_message", "parameters"],
    ["42P02", "variable_paramref_hook", "parameters"],
    ["42P18", "check_parameter_resolution_walker", "parameters"],
    ["42P18", "transformArrayExpr", "type_mismatch"],
    ["57014", "ProcessInterrupts", "timeout"],
    ["55P03", "ProcSleep", "lock_timeout"],
    ["40P01", "DeadLockReport", "lock_timeout"],
    ["53400", "FileWrite", "resource_limit"],
    ["54011", "transformTargetList", "resource_limit"],
    ["XX000", "MemoryContextSizeFailure", "resource_limit"],
    ["XX000", "elog", "engine_error"],
    ["21000", "ExecSetParamPlan", "engine_error"],
    // user code may raise what it likes
    ["57014", "exec_stmt_raise", "engine_error"],
    ["28P01", "exec_stmt_raise", "engine_error"],
    ["42P01", "exec_stmt_raise", "engine_error"]
  ])("%s from %s is %s", (code, routine, reason) => {
    expect(reasonOf({ message: "", code, routine })).toBe(reason)
    expect(refused(engine(code, { routine }), context)).toMatchObject({
      _tag: "QueryFailed",
      reason,
      engine: { code }
    })
  })

  it("is a rejection where the engine refuses to write or a second statement", () => {
    expect(refused(engine("25006"), context)).toMatchObject({ _tag: "QueryRejected", reason: "read_only" })
    expect(refused(engine("25006", { routine: "exec_stmt_raise" }), context)._tag).toBe("QueryFailed")
    expect(refused(engine("42601", { routine: "exec_parse_message" }), context)).toMatchObject({
      _tag: "QueryRejected",
      reason: "multiple_statements"
    })
  })

  it("names no file of the server", () => {
    const says = (message: string, code = "58P01", said = "select 1") =>
      refused(Object.assign(engine(code), { message }), { ...context, said }).message
    expect(says('could not open file "orders.csv" for reading: No such file')).toBe(
      'could not open file "…" for reading: No such file'
    )
    expect(says("konnte Datei »data/orders.csv« nicht öffnen")).toBe("konnte Datei »…« nicht öffnen")
    expect(says('could not access file "$libdir/own": none')).toBe('could not access file "…": none')
    expect(says('file "x" is missing', "58P01", "select 'x'")).toBe('file "x" is missing')
    expect(says("invalid page in block 0 of relation base/5/1259", "XX001")).toBe(
      "invalid page in block 0 of relation …"
    )
    expect(says('relation "orders" does not exist', "42P01")).toBe('relation "orders" does not exist')
  })

  it("is no timeout where the time had not passed", () => {
    expect(refused(engine("57014"), { ...context, timedOut: false }).reason).toBe("engine_error")
  })

  it("counts the position in what the caller wrote", () => {
    expect(refused(engine("42703", { position: "30" }), { ...context, prefix: 22 }).engine).toEqual({
      code: "42703",
      position: 8
    })
  })
})

describe("what a message may repeat", () => {
  const confidential = { password: "s3cret", names: ["bob", "reporter", "db.internal"] }

  it("is bounded, whatever the engine repeats", () => {
    for (const part of ["a.", "/a", "/aaaa ", "user=", "host=a://"]) {
      expect(publicText(part.repeat(5_000_000), "", confidential).length).toBeLessThan(9000)
    }
    const cut = publicText(`${"x ".repeat(3998)}reporter`, "", confidential)
    expect(cut).not.toContain("rep")
    expect(publicText(`invalid: "${"/a".repeat(5_000)}"`, "", confidential)).toBe('invalid: "…')
  })

  it("holds no half of a secret that was cut off", () => {
    const long = `dial ${"/a".repeat(3970)}`
    for (const secret of ["postgres://other:hid", "password='hid den", "password=hid"]) {
      const text = `${long.slice(0, 7999 - secret.length)} ${secret}den@host/db?password=hidden'`
      expect(publicText(text, "", confidential)).not.toContain("hid")
    }
  })

  it("is looked for in what the caller said a bounded number of times", () => {
    const paths = Array.from({ length: 1500 }, (_, at) => `/a/${at}`).join(" ")
    const said = "x".repeat(200_000_000)
    const error = engine("22P02", { message: `invalid input: ${paths}` })
    for (let time = 0; time < 5; time++) {
      const { message } = refused(error, { ...context, said })
      expect(message).toMatch(/^invalid input: … …/)
    }
  })

  it("is read in one pass where quotes are opened and never closed", () => {
    const message = `could not open file ${"「".repeat(1_000_000)}`
    expect(refused(engine("58P01", { message }), context).message).toContain("could not open")
  })

  it.each([
    ['role "bob" does not exist', "select 1", 'role "…" does not exist'],
    ["Rolle »bob« existiert nicht", "select 1", "Rolle »…« existiert nicht"],
    ['column "bob" does not exist', "select bob", 'column "bob" does not exist'],
    ['relation "bobs" does not exist', "select * from v", 'relation "bobs" does not exist'],
    ["reporter is not allowed, reporters are", "", "… is not allowed, reporters are"],
    ["no answer from db.internal:5432, 3 times", "", "no answer from …, 3 times"],
    ["bob may not", "", "bob may not"],
    ["cannot reach postgres://u:p@other:5432/db now", "", "cannot reach … now"],
    ["dial host=10.0.0.5 port=5432 user='a b' password=x.", "", "dial … … … …"],
    ["value user=x", "select 'user=x'::int", "value user=x"],
    ["with s3cret at db.internal", "", "with … at …"],
    ['could not open file "/var/lib/postgresql/x"', "", 'could not open file "…"'],
    ['invalid input: "/a/b"', "select '/a/b'::int", 'invalid input: "/a/b"'],
    ["1/0 and a/b", "", "1/0 and a/b"]
  ])("%s", (text, said, wanted) => {
    expect(publicText(text, said, confidential)).toBe(wanted)
  })
})
