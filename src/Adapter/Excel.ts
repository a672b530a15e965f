/**
 * Workbooks and delimited text, queried with SQL. The file is read into the memory of a child process, one for each
 * file, and statements run there as they do on an SQLite database.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Scope } from "effect/Scope"
import { Adapter, type AdapterService } from "../Adapter.js"
import type { ExcelSetup } from "./Excel/Child.js"
import type { Config } from "./Excel/Config.js"
import { toFailure } from "./Excel/Failure.js"
import * as ChildAdapter from "./Sqlite/ChildAdapter.js"
import * as ChildPool from "./Sqlite/ChildPool.js"

export { Config } from "./Excel/Config.js"

/** Bound of the tables in a child's memory, beside the bound of its JavaScript heap. */
const maxTableBytes = 768 * 2 ** 20
const heapMiB = 192

/** An adapter for one file. Its child ends with the scope. */
export const make = (config: Config): Effect.Effect<AdapterService, never, Scope> => {
  const { engine, file } = config
  const setup: ExcelSetup = { file, engine, maxTableBytes }
  return Effect.map(
    ChildPool.make({ program: "ExcelChild", setup, size: 1, spare: false, heapMiB }),
    (pool) =>
      ChildAdapter.make({
        engine,
        pool,
        toFailure: toFailure(engine === "excel" ? "workbook" : "text file"),
        describe: (version) =>
          `${engine === "excel" ? "Workbook" : "Delimited text"} read by SQLite ${version}`
      })
  )
}

/** The same as a Layer, for applications that embed the adapter. */
export const layer = (config: Config): Layer.Layer<Adapter> => Layer.scoped(Adapter, make(config))
