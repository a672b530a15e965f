/** An MCP server on stdio for two sources side by side: a file here, and a service elsewhere. `node main.js shop.db URL` */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Effect from "effect/Effect"
import { Sources } from "mcp-query"
import { Sqlite } from "mcp-query/adapters"
import { serve } from "mcp-query/server"
import * as RemoteAdapter from "./RemoteAdapter.js"

const [file = "shop.db", url = "http://127.0.0.1:3000/query"] = process.argv.slice(2)

const sources = Sources.layer([
  { id: "here", engine: "sqlite", adapter: Sqlite.layer({ file }) },
  {
    id: "there",
    engine: "sqlite",
    description: "the same behind HTTP",
    adapter: RemoteAdapter.layer(url),
    limits: { maxRows: 100, timeoutMs: 10_000 }
  }
])

NodeRuntime.runMain(serve().pipe(Effect.provide(sources)))
