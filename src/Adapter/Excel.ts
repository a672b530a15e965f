/**
 * Workbooks and delimited text, queried with SQL. The file is read into the memory of a child process, one for each
 * file, and statements run there as they do on an SQLite database.
 */
import { basename } from "node:path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Scope } from "effect/Scope"
import { Adapter, type AdapterService, guarded } from "../Adapter.js"
import { Config, type ExcelSetup } from "./Excel/Config.js"
import { toFailure } from "./Excel/Failure.js"
import * as ChildAdapter from "./Sqlite/ChildAdapter.js"
import * as ChildPool from "./Sqlite/ChildPool.js"
import * as Telemetry from "./Telemetry.js"

export { Config } from "./Excel/Config.js"

/** Bound of the tables in a child's memory, beside the bound of its JavaScript heap. */
const maxTableBytes = 768 * 2 ** 20
const heapMiB = 192

/** The fields of {@link Config}; those that have a default may be left out. */
export type Options = ConstructorParameters<typeof Config>[0]

/**
 * An adapter for one file. Its child process starts when it is made and ends with the scope. Options that do not fit
 * {@link Config} throw a `ParseError`.
 */
export const make = (options: Options): Effect.Effect<AdapterService, never, Scope> => {
  const { engine, file } = Config.make(options)
  const setup: ExcelSetup = { file, engine, maxTableBytes }
  return Effect.map(
    ChildPool.make({ program: "ExcelChild", setup, size: 1, spare: false, heapMiB }),
    (pool) =>
      Telemetry.traced(
        // What runs the statements is SQLite.
        { system: "sqlite", namespace: basename(file) },
        guarded(
          ChildAdapter.make({
            engine,
            pool,
            toFailure: toFailure(engine === "excel" ? "workbook" : "text file"),
            describe: (version) =>
              `${engine === "excel" ? "Workbook" : "Delimited text"} read by SQLite ${version}`
          })
        )
      )
  )
}

/** The same as a Layer. */
export const layer = (options: Options): Layer.Layer<Adapter> => Layer.scoped(Adapter, make(options))
