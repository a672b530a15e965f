/** An MCP server on stdio for SQLite, and beside it for an engine that this package does not know. `node main.js shop.db visits.duckdb` */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Effect from "effect/Effect"
import { Sources } from "mcp-query"
import { Sqlite } from "mcp-query/adapters"
import { serve } from "mcp-query/server"
import * as DuckDbAdapter from "./DuckDbAdapter.js"
import { dialect } from "./DuckDbDialect.js"

const [shop = "shop.db", visits = "visits.duckdb"] = process.argv.slice(2)

const sources = Sources.layer([
  { id: "shop", engine: "sqlite", adapter: Sqlite.layer({ file: shop }) },
  { id: "visits", engine: dialect, adapter: DuckDbAdapter.layer(visits) }
])

NodeRuntime.runMain(serve().pipe(Effect.provide(sources)))
