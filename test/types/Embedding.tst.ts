import type { SqlClient } from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type { Scope } from "effect/Scope"
import { describe, expect, test } from "tstyche"
import { Excel, Postgres, type ReadClient, Sqlite, SqlServer, Telemetry } from "../../src/adapters.js"
import {
  Adapter,
  type CatalogReader,
  type Dialect,
  type FatalError,
  Policy,
  type QueryError,
  type QueryResult,
  type SchemaResult,
  Sources,
  Tools
} from "../../src/index.js"
import { layer, type McpServer, serve } from "../../src/server.js"

type Tags = QueryError.ConnectionFailed | QueryError.QueryFailed | QueryError.QueryRejected

const sources = Sources.layer([{ id: "shop", engine: "sqlite", adapter: Sqlite.layer({ file: "shop.db" }) }])

describe("an adapter's Layer", () => {
  test("needs nothing, and cannot fail", () => {
    expect(Sqlite.layer({ file: "shop.db" })).type.toBe<Layer.Layer<Adapter.Adapter, never, never>>()
    expect(Excel.layer({ file: "budget.xlsx" })).type.toBe<Layer.Layer<Adapter.Adapter, never, never>>()
    expect(Excel.layer({ file: "orders.csv", engine: "csv" })).type.toBe<Layer.Layer<Adapter.Adapter>>()
    expect(Postgres.layer({ host: "localhost" })).type.toBe<Layer.Layer<Adapter.Adapter, never, never>>()
    expect(SqlServer.layer({ host: "localhost" })).type.toBe<Layer.Layer<Adapter.Adapter, never, never>>()
  })

  test("takes a decoded Config as well as its fields", () => {
    expect(Sqlite.layer).type.toBeCallableWith(Sqlite.Config.make({ file: "shop.db" }))
    expect(Postgres.layer).type.toBeCallableWith(Postgres.Config.make({ host: "localhost" }))
    expect(SqlServer.layer).type.toBeCallableWith(SqlServer.Config.make({ host: "localhost" }))
    expect(Excel.layer).type.toBeCallableWith(Excel.Config.make({ file: "budget.xlsx" }))
  })

  test("takes secrets only as Redacted", () => {
    expect(Postgres.layer).type.toBeCallableWith({ host: "localhost", password: Redacted.make("") })
    expect(Postgres.layer).type.not.toBeCallableWith({ host: "localhost", password: "" })
    expect(SqlServer.layer).type.toBeCallableWith({ host: "localhost", password: Redacted.make("") })
    expect(SqlServer.layer).type.not.toBeCallableWith({ host: "localhost", password: "" })
    expect(Postgres.configFromUrl).type.not.toBeCallableWith("postgres://localhost/crm")
    expect(SqlServer.configFromUrl).type.not.toBeCallableWith("sqlserver://localhost/crm")
  })

  test("does not take a field that is none", () => {
    expect(Sqlite.layer).type.not.toBeCallableWith({ path: "shop.db" })
    expect(Sqlite.layer).type.not.toBeCallableWith({})
  })
})

describe("an adapter in a program", () => {
  const program = Effect.gen(function* () {
    const adapter = yield* Adapter.Adapter
    const query = yield* Policy.admit(adapter.engine, { sql: "select 1", params: [] })
    return yield* adapter.query(query, {
      maxRows: 1,
      maxBytes: 100,
      maxCellBytes: 16,
      timeoutMs: 1000,
      format: "records"
    })
  })

  test("leaves exactly the three tags, and nothing to provide", () => {
    expect<Effect.Effect.Error<typeof program>>().type.toBe<Tags>()
    expect<Effect.Effect.Context<typeof program>>().type.toBe<Adapter.Adapter>()
    const provided = Effect.provide(program, Sqlite.layer({ file: "shop.db" }))
    expect<Effect.Effect.Error<typeof provided>>().type.toBe<Tags>()
    expect<Effect.Effect.Context<typeof provided>>().type.toBe<never>()
  })

  test("leaves nothing when the three are handled", () => {
    const nothing = () => Effect.void
    const handled = Effect.catchTags(program, {
      ConnectionFailed: nothing,
      QueryFailed: nothing,
      QueryRejected: nothing
    })
    expect<Effect.Effect.Error<typeof handled>>().type.toBe<never>()
    const two = Effect.catchTags(program, { ConnectionFailed: nothing, QueryFailed: nothing })
    expect<Effect.Effect.Error<typeof two>>().type.toBe<QueryError.QueryRejected>()
  })
})

describe("sources and tools", () => {
  test("sources need nothing, and fail only for their description", () => {
    expect(sources).type.toBe<Layer.Layer<Sources.Sources, FatalError.FatalError, never>>()
    expect(Layer.provide(sources, Sources.crashShield)).type.toBe<
      Layer.Layer<Sources.Sources, FatalError.FatalError, never>
    >()
  })

  test("take any Layer of the port that needs nothing and cannot fail", () => {
    type Own<E, R> = { id: "own"; engine: "sqlite"; adapter: Layer.Layer<Adapter.Adapter, E, R> }
    expect<Own<never, never>>().type.toBeAssignableTo<Sources.SourceOptions>()
    expect<Own<Error, never>>().type.not.toBeAssignableTo<Sources.SourceOptions>()
    expect<Own<never, SqlClient>>().type.not.toBeAssignableTo<Sources.SourceOptions>()
    expect<Omit<Own<never, never>, "engine">>().type.not.toBeAssignableTo<Sources.SourceOptions>()
  })

  test("tools need sources, and fail as a client's calls do", () => {
    expect(Tools.layer).type.toBe<Layer.Layer<Tools.Tools, never, Sources.Sources>>()
    expect(Layer.provide(Tools.layer, sources)).type.toBe<Layer.Layer<Tools.Tools, FatalError.FatalError>>()
    expect<ReturnType<Tools.ToolsService["query"]>>().type.toBe<
      Effect.Effect<QueryResult.QueryResult, QueryError.QueryError>
    >()
    expect<Effect.Effect.Error<ReturnType<Tools.ToolsService["explain"]>>>().type.toBe<
      Tags | QueryError.InvalidInput
    >()
    expect<ReturnType<Tools.ToolsService["schema"]>>().type.toBe<
      Effect.Effect<SchemaResult.SchemaAnswer, QueryError.QueryError>
    >()
  })
})

describe("a Dialect", () => {
  type With<Changed> = Omit<Dialect.Dialect, keyof Changed> & Changed
  type Inspect<E, R = never, A = "execute"> = With<{ inspect: (sql: string) => Effect.Effect<A, E, R> }>
  type Own<Engine> = { id: "own"; engine: Engine; adapter: Layer.Layer<Adapter.Adapter> }

  test("stands where one of our names may stand, and no other name does", () => {
    expect<Adapter.Engine>().type.toBe<"sqlite" | "postgres" | "mssql" | "excel" | "csv">()
    expect<Own<Adapter.Engine>>().type.toBeAssignableTo<Sources.SourceOptions>()
    expect<Own<Dialect.Dialect>>().type.toBeAssignableTo<Sources.SourceOptions>()
    expect<Own<"duckdb">>().type.not.toBeAssignableTo<Sources.SourceOptions>()
    expect<Adapter.AdapterService["engine"]>().type.toBe<Adapter.Engine | Dialect.Dialect>()
    expect(Policy.admit).type.toBeCallableWith({} as Dialect.Dialect, { sql: "select 1", params: [] })
    expect(Policy.admit).type.not.toBeCallableWith("duckdb", { sql: "select 1", params: [] })
  })

  test("judges every statement, and may only reject it", () => {
    expect<Omit<Dialect.Dialect, "inspect">>().type.not.toBeAssignableTo<Dialect.Dialect>()
    expect<Inspect<never>>().type.toBeAssignableTo<Dialect.Dialect>()
    expect<Inspect<QueryError.QueryRejected>>().type.toBeAssignableTo<Dialect.Dialect>()
    expect<Inspect<QueryError.QueryFailed>>().type.not.toBeAssignableTo<Dialect.Dialect>()
    expect<Inspect<never, SqlClient>>().type.not.toBeAssignableTo<Dialect.Dialect>()
    expect<Inspect<never, never, "allow">>().type.not.toBeAssignableTo<Dialect.Dialect>()
    expect<Dialect.Verdict>().type.toBe<
      Effect.Effect<Adapter.AdmittedQuery["mode"], QueryError.QueryRejected>
    >()
  })

  test("reads its catalog with no more tags than an adapter", () => {
    type Catalog<E> = With<{ catalog: Effect.Effect<CatalogReader.Reader, E> }>
    expect<Catalog<never>>().type.toBeAssignableTo<Dialect.Dialect>()
    expect<Catalog<Tags>>().type.not.toBeAssignableTo<Dialect.Dialect>()
    expect<Effect.Effect<number, Tags>>().type.toBeAssignableTo<CatalogReader.Read<number>>()
    expect<Effect.Effect<number, Error>>().type.not.toBeAssignableTo<CatalogReader.Read<number>>()
  })
})

describe("the server", () => {
  test("needs sources, and cannot fail", () => {
    expect(serve()).type.toBe<Effect.Effect<void, never, Sources.Sources>>()
    expect(layer()).type.toBe<Layer.Layer<McpServer, never, Sources.Sources>>()
    expect(Layer.provide(layer(), sources)).type.toBe<Layer.Layer<McpServer, FatalError.FatalError>>()
  })
})

describe("for those who write an adapter", () => {
  test("a traced adapter is an adapter", () => {
    expect(Telemetry.traced).type.toBe<
      (database: Telemetry.Database, service: Adapter.AdapterService) => Adapter.AdapterService
    >()
  })

  test("a client is what the port asks for", () => {
    expect<ReturnType<typeof ReadClient.make>>().type.toBe<Effect.Effect<SqlClient, never, Scope>>()
    expect<ReturnType<typeof ReadClient.make>>().type.toBeAssignableTo<Adapter.AdapterService["client"]>()
  })
})
