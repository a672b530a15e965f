/**
 * An MCP server on stdio whose calls are spans at an OpenTelemetry collector: `tools/call query`, and beneath it the
 * statement with its `db.*` attributes. `OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 node main.js shop.db`
 */
import * as Otlp from "@effect/opentelemetry/Otlp"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Sources } from "mcp-query"
import { Sqlite, Telemetry } from "mcp-query/adapters"
import { serve } from "mcp-query/server"

const [file = "shop.db"] = process.argv.slice(2)

const collector = Otlp.layerJson({
  baseUrl: process.env["OTEL_EXPORTER_OTLP_ENDPOINT"] ?? "http://localhost:4318",
  resource: { serviceName: "shop-reader" }
}).pipe(Layer.provide(FetchHttpClient.layer))

const sources = Sources.layer([{ id: "shop", engine: "sqlite", adapter: Sqlite.layer({ file }) }])

const main = serve().pipe(
  // Statements with literals may hold what no collector should keep; here they are all told.
  Effect.provideService(Telemetry.QueryText, "always"),
  Effect.provide(sources),
  Effect.provide(collector)
)

NodeRuntime.runMain(main)
