/**
 * SQLite files. Statements run in child processes, because the driver is synchronous and a statement can only be
 * stopped for certain by ending its process.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Scope } from "effect/Scope"
import { Adapter, type AdapterService } from "../Adapter.js"
import type { SqliteSetup } from "./Sqlite/Child.js"
import * as ChildAdapter from "./Sqlite/ChildAdapter.js"
import * as ChildPool from "./Sqlite/ChildPool.js"
import type { Config } from "./Sqlite/Config.js"
import { toFailure } from "./Sqlite/Failure.js"

export { Config } from "./Sqlite/Config.js"

/** Bound of SQLite's own memory in a child, beside the bound of its JavaScript heap. */
const heapLimitBytes = 128 * 2 ** 20
const heapMiB = 192

/** An adapter for one database file. Its children end with the scope. */
export const make = (config: Config): Effect.Effect<AdapterService, never, Scope> => {
  const setup: SqliteSetup = { file: config.file, heapLimitBytes }
  return Effect.map(
    ChildPool.make({ program: "SqliteChild", setup, size: config.maxConcurrent, spare: true, heapMiB }),
    (pool) =>
      ChildAdapter.make({ engine: "sqlite", pool, toFailure, describe: (version) => `SQLite ${version}` })
  )
}

/** The same as a Layer, for applications that embed the adapter. */
export const layer = (config: Config): Layer.Layer<Adapter> => Layer.scoped(Adapter, make(config))
