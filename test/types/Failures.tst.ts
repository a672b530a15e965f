import type { SqlClient } from "@effect/sql/SqlClient"
import type * as Effect from "effect/Effect"
import type { Layer } from "effect/Layer"
import * as Schema from "effect/Schema"
import type { Scope } from "effect/Scope"
import { describe, expect, test } from "tstyche"
import type * as Excel from "../../src/Adapter/Excel.js"
import type * as Postgres from "../../src/Adapter/Postgres.js"
import type * as Sqlite from "../../src/Adapter/Sqlite.js"
import type * as SqlServer from "../../src/Adapter/SqlServer.js"
import type { Adapter, AdapterService, AdmittedQuery, CallLimits } from "../../src/Adapter.js"
import { categoryOf } from "../../src/McpServer/Response.js"
import type * as Policy from "../../src/Policy.js"
import type {
  AdapterFailure,
  ConnectionFailed,
  InvalidInput,
  isRetryable,
  QueryError,
  QueryFailed,
  QueryRejected
} from "../../src/QueryError.js"
import type { Tool } from "../../src/Tool.js"

type Tags = ConnectionFailed | QueryFailed | QueryRejected

class QuotaExceeded extends Schema.TaggedError<QuotaExceeded>()("QuotaExceeded", {
  message: Schema.String
}) {}

type FailureOf<A> = A extends Effect.Effect<unknown, infer E, infer _> ? E : never

describe("the failure channel of an adapter", () => {
  test("is exactly the three tags", () => {
    expect<AdapterFailure>().type.toBe<Tags>()
    expect<AdapterFailure["_tag"]>().type.toBe<"ConnectionFailed" | "QueryFailed" | "QueryRejected">()
    expect<FailureOf<ReturnType<AdapterService["query"]>>>().type.toBe<Tags>()
    expect<FailureOf<ReturnType<AdapterService["explain"]>>>().type.toBe<Tags>()
    expect<FailureOf<AdapterService["client"]>>().type.toBe<Tags>()
    expect<FailureOf<AdapterService["report"]>>().type.toBe<Tags>()
  })

  test("needs nothing but what the adapter has", () => {
    expect<AdapterService["client"]>().type.toBe<Effect.Effect<SqlClient, AdapterFailure, Scope>>()
  })

  test("making an adapter cannot fail", () => {
    expect<ReturnType<typeof Sqlite.make>>().type.toBe<Effect.Effect<AdapterService, never, Scope>>()
    expect<ReturnType<typeof Postgres.make>>().type.toBe<Effect.Effect<AdapterService, never, Scope>>()
    expect<ReturnType<typeof SqlServer.make>>().type.toBe<Effect.Effect<AdapterService, never, Scope>>()
    expect<ReturnType<typeof Excel.make>>().type.toBe<Effect.Effect<AdapterService, never, Scope>>()
    expect<ReturnType<typeof Sqlite.layer>>().type.toBe<Layer<Adapter>>()
    expect<ReturnType<typeof Postgres.layer>>().type.toBe<Layer<Adapter>>()
    expect<ReturnType<typeof SqlServer.layer>>().type.toBe<Layer<Adapter>>()
    expect<ReturnType<typeof Excel.layer>>().type.toBe<Layer<Adapter>>()
  })
})

describe("the handler", () => {
  test("takes an adapter's failures and invalid input, and nothing else", () => {
    expect<QueryError>().type.toBe<Tags | InvalidInput>()
    expect<Parameters<typeof categoryOf>[0]>().type.toBe<QueryError>()
    expect<Parameters<typeof isRetryable>[0]>().type.toBe<QueryError>()
    expect<FailureOf<ReturnType<Tool["run"]>>>().type.toBe<QueryError>()
    expect(categoryOf).type.not.toBeCallableWith(new QuotaExceeded({ message: "" }))
    expect(categoryOf).type.not.toBeCallableWith(new Error(""))
  })

  test("of a union with one more tag does not compile", () => {
    // @ts-expect-error Function lacks ending return statement
    const category = (error: QueryError | QuotaExceeded): string => {
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
    expect(category).type.toBeCallableWith(new QuotaExceeded({ message: "" }))
  })
})

describe("an admitted query", () => {
  test("is not made by hand", () => {
    expect<{ sql: string; params: []; mode: "execute" }>().type.not.toBeAssignableTo<AdmittedQuery>()
    expect<AdapterService["query"]>().type.not.toBeCallableWith(
      { sql: "select 1", params: [], mode: "execute" },
      {} as CallLimits
    )
  })

  test("comes from Policy, which may only reject", () => {
    expect<ReturnType<typeof Policy.admit>>().type.toBe<Effect.Effect<AdmittedQuery, QueryRejected>>()
  })
})
