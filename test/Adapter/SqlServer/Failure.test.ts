import { describe, expect, it } from "@effect/vitest"
import {
  connectFailure,
  connectionReason,
  lostConnection,
  queryReasons,
  requestFailure,
  unmappedNumber
} from "../../../src/Adapter/SqlServer/Failure.js"
import { isRetryable } from "../../../src/QueryError.js"
import handed from "../../cases/connection.mssql.json" with { type: "json" }
import statements from "../../cases/errors.mssql.json" with { type: "json" }

const engineError = (number: number, severity = 16, message = "engine words") =>
  Object.assign(new Error(message), { number, class: severity, state: 1, lineNumber: 2, code: "EREQUEST" })

interface ErrorCase {
  readonly id: string
  readonly category: string
  readonly reason: string
  readonly reasonAlso?: ReadonlyArray<string>
  readonly engineCode?: string
}

describe("handed errors, by the numbers of SQL Server", () => {
  const cases: ReadonlyArray<ErrorCase> = statements
  for (const { category, engineCode, id, reason, reasonAlso = [] } of cases) {
    if (engineCode === undefined || category !== "query_failed") continue
    it(`${id} ${engineCode}: ${reason}`, () => {
      const failure = requestFailure(engineError(Number(engineCode)), false)
      expect(failure._tag).toBe("QueryFailed")
      expect([reason, ...reasonAlso]).toContain(failure.reason)
      expect(failure.engine).toEqual({ code: engineCode, line: 2 })
    })
  }
})

describe("handed connection failures", () => {
  interface Raw {
    readonly code?: string
    readonly cause?: { readonly code: string }
    readonly errorMessageToken?: { readonly number: number; readonly class?: number }
  }
  interface ConnectionCase {
    readonly id: string
    readonly reason: string
    readonly retryable: boolean
    readonly raw?: Raw
    readonly babelfish?: { readonly number: number; readonly class: number }
  }
  const cases: ReadonlyArray<ConnectionCase> = handed
  for (const { babelfish, id, raw, reason, retryable } of cases) {
    if (raw === undefined) continue
    const said = [raw.errorMessageToken, babelfish].flatMap((token) =>
      token === undefined
        ? []
        : [
            {
              number: token.number,
              class: token.class ?? 16,
              message: "Login failed for user 'reader' on host db.internal"
            }
          ]
    )
    it(`${id}: ${reason}`, () => {
      const error = Object.assign(new Error("Failed to connect to db.internal:1433"), {
        code: raw.code,
        // The driver gathers what each address of a host answered.
        cause: raw.cause ?? new AggregateError([Object.assign(new Error("x"), { code: "ECONNREFUSED" })])
      })
      for (const token of said.length > 0 ? said.map((one) => [one]) : [[]]) {
        const failure =
          reason === "closed"
            ? lostConnection(error, true)
            : connectFailure(raw.code === "ETIMEOUT" ? { code: "ETIMEOUT" } : error, token)
        expect(failure.reason).toBe(reason)
        expect(isRetryable(failure)).toBe(retryable)
        expect(`${failure.message}${failure.hint ?? ""}`).not.toMatch(/db\.internal|1433|reader/)
      }
    })
  }
})

describe("causes of a connection's failure", () => {
  const coded = (code: string) => Object.assign(new Error("x"), { code })
  const table: ReadonlyArray<readonly [string, unknown, string]> = [
    ["a refused port", new Error("x", { cause: new AggregateError([coded("ECONNREFUSED")]) }), "refused"],
    [
      "an unreachable network",
      new Error("x", { cause: new AggregateError([coded("ENETUNREACH")]) }),
      "refused"
    ],
    ["a silent host", new Error("x", { cause: new AggregateError([coded("ETIMEDOUT")]) }), "timeout"],
    [
      "an unknown name",
      Object.assign(new Error("x", { cause: coded("ENOTFOUND") }), { code: "ESOCKET" }),
      "dns"
    ],
    [
      "a resolver that fails",
      Object.assign(new Error("x", { cause: coded("EAI_AGAIN") }), { code: "ESOCKET" }),
      "dns"
    ],
    [
      "an instance nobody knows",
      Object.assign(new Error("x", { cause: coded("ENOTFOUND") }), { code: "EINSTLOOKUP" }),
      "dns"
    ],
    ["a self-signed certificate", new Error("x", { cause: coded("DEPTH_ZERO_SELF_SIGNED_CERT") }), "tls"],
    ["an expired certificate", new Error("x", { cause: coded("CERT_HAS_EXPIRED") }), "tls"],
    ["another name", new Error("x", { cause: coded("ERR_TLS_CERT_ALTNAME_INVALID") }), "tls"],
    ["an unknown issuer", new Error("x", { cause: coded("UNABLE_TO_VERIFY_LEAF_SIGNATURE") }), "tls"],
    ["no common version", new Error("x", { cause: coded("ERR_SSL_UNSUPPORTED_PROTOCOL") }), "tls"],
    ["a token that is refused", new AggregateError([coded("EFEDAUTH"), new Error("y")]), "authentication"],
    ["a login without a number", coded("ELOGIN"), "authentication"],
    ["a reset", new Error("x", { cause: coded("ECONNRESET") }), "closed"],
    ["nothing known", "odd", "closed"],
    ["nothing", undefined, "closed"]
  ]
  for (const [what, error, reason] of table)
    it(`${what}: ${reason}`, () => expect(connectionReason(error)).toBe(reason))
})

describe("statements", () => {
  it("of several errors, the first that is known decides", () => {
    const gathered = new AggregateError([engineError(8180), engineError(208), engineError(207)])
    expect(requestFailure(gathered, false)).toMatchObject({
      reason: "unknown_table",
      engine: { code: "208" }
    })
    const unknown = new AggregateError([engineError(50_000, 0), engineError(50_001)])
    expect(requestFailure(unknown, false)).toMatchObject({
      reason: "engine_error",
      engine: { code: "50001" }
    })
  })

  it("from class 20 on the connection is lost, whatever else was said", () => {
    const gathered = new AggregateError([engineError(208), engineError(596, 21)])
    expect(requestFailure(gathered, true)).toMatchObject({ _tag: "ConnectionFailed", beforeFirstRow: false })
    expect(requestFailure(gathered, false)).toMatchObject({ _tag: "ConnectionFailed", beforeFirstRow: true })
  })

  it("an engine's refusal to write is a rejection", () =>
    expect(requestFailure(engineError(3906), false)).toMatchObject({
      _tag: "QueryRejected",
      reason: "read_only"
    }))

  it("words of a lost connection in a message mean nothing", () =>
    expect(requestFailure(engineError(245, 16, "Connection lost - socket hang up"), false)).toMatchObject({
      _tag: "QueryFailed",
      reason: "type_mismatch"
    }))

  it("an unknown number is an engine error with its own words", () =>
    expect(requestFailure(engineError(51_234, 16, "made up"), false)).toMatchObject({
      reason: "engine_error",
      message: "made up",
      engine: { code: "51234" }
    }))

  it("the login's name does not show", () =>
    expect(
      requestFailure(engineError(916, 14, 'The server principal "reader" is not able to access "x"'), false)
        .message
    ).not.toContain("reader"))

  it("a lock timeout may be tried again", () => {
    for (const number of [1205, 1222])
      expect(isRetryable(requestFailure(engineError(number), false))).toBe(true)
  })

  const words: ReadonlyArray<readonly [string, string]> = [
    ['relation "nope" does not exist', "unknown_table"],
    ['column "nme" does not exist', "unknown_column"],
    ["function nofn(integer) does not exist", "unknown_function"],
    ['column reference "k" is ambiguous', "ambiguous_name"],
    ["permission denied for table secret", "permission_denied"],
    ['invalid input syntax for type integer: "abc"', "type_mismatch"],
    ["syntax error near 'from' at line 1 and character position 7", "syntax"],
    ["canceling statement due to lock timeout", "lock_timeout"],
    ["stack depth limit exceeded", "resource_limit"],
    ["something else", "engine_error"]
  ]
  for (const [message, reason] of words)
    it(`Babelfish's ${message}: ${reason}`, () =>
      expect(requestFailure(engineError(unmappedNumber, 16, message), false)).toMatchObject({
        reason,
        message,
        engine: { code: String(unmappedNumber) }
      }))

  it("Babelfish's words at a login: too_many_connections", () =>
    expect(
      connectFailure(new Error("Login failed"), [
        engineError(unmappedNumber, 20, "sorry, too many clients already")
      ])
    ).toMatchObject({ reason: "too_many_connections" }))

  it("no number has two reasons", () => {
    const numbers = [...queryReasons.keys()]
    expect(new Set(numbers).size).toBe(numbers.length)
    expect(numbers.length).toBeGreaterThan(100)
  })
})
