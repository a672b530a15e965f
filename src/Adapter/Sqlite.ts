/**
 * SQLite files. Statements run in child processes, because the driver is synchronous and a statement can only be
 * stopped for certain by ending its process.
 */
import { basename } from "node:path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Scope } from "effect/Scope"
import { Adapter, type AdapterService, guarded } from "../Adapter.js"
import * as ChildAdapter from "./Sqlite/ChildAdapter.js"
import * as ChildPool from "./Sqlite/ChildPool.js"
import { Config } from "./Sqlite/Config.js"
import { toFailure } from "./Sqlite/Failure.js"
import type { SqliteSetup } from "./Sqlite/Protocol.js"
import * as Telemetry from "./Telemetry.js"

export { Config } from "./Sqlite/Config.js"

/** Bound of a child's JavaScript heap. */
const heapMiB = 192

/** The fields of {@link Config}; those that have a default may be left out. */
export type Options = ConstructorParameters<typeof Config>[0]

/**
 * An adapter for one database file. Its child processes start when it is made and end with the scope. Options that do
 * not fit {@link Config} throw a `ParseError`.
 */
export const make = (options: Options): Effect.Effect<AdapterService, never, Scope> => {
  const { file, maxConcurrent } = Config.make(options)
  const setup: SqliteSetup = { file }
  return Effect.map(
    ChildPool.make({ program: "SqliteChild", setup, size: maxConcurrent, spare: true, heapMiB }),
    (pool) =>
      Telemetry.traced(
        { system: "sqlite", namespace: basename(file) },
        guarded(
          ChildAdapter.make({ engine: "sqlite", pool, toFailure, describe: (version) => `SQLite ${version}` })
        )
      )
  )
}

/** The same as a Layer. */
export const layer = (options: Options): Layer.Layer<Adapter> => Layer.scoped(Adapter, make(options))
