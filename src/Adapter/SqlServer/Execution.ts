/** Runs one statement or batch on a connection. Only its first result set is read. */
import * as Effect from "effect/Effect"
import { Request } from "tedious"
import type { AdapterFailure } from "../../QueryError.js"
import type { Cell, Column } from "../../Rows.js"
import { requestFailure } from "./Failure.js"
import { addParameters } from "./Parameter.js"
import { readColumns } from "./TokenReader.js"
import type { Wire } from "./Wire.js"

/** Takes an answer while it arrives. */
export interface Sink {
  readonly columns: (columns: ReadonlyArray<Column>) => void
  /** False when no further row is wanted. */
  readonly row: (cells: ReadonlyArray<Cell>) => boolean
}

export interface Execution {
  readonly sql: string
  /** A batch is sent as it is; a statement by sp_executesql, whose settings and temporary objects end with it. */
  readonly kind: "batch" | "statement"
  readonly params?: ReadonlyArray<unknown>
  readonly nameOf?: (position: number) => string
  readonly sink?: Sink
  readonly maxCellBytes?: number
}

/** How an execution ended: `stopped` when its rows were cut off here, so that the engine was told to stop. */
export type Ending = "complete" | "stopped"

/** How long the engine may take to acknowledge that it stopped; then the connection is given up. */
const patienceMs = 400

/** `@p1`, `@p2`, … */
export const parameterName = (position: number) => `p${position}`

export const execute = (wire: Wire, execution: Execution): Effect.Effect<Ending, AdapterFailure> =>
  Effect.async((resume) => {
    const { kind, maxCellBytes = 0, nameOf = parameterName, params = [], sink, sql } = execution
    let answered = false
    let stopped = false
    let sets = 0
    let rows = 0
    let patience: NodeJS.Timeout | undefined
    let acknowledged: () => void = () => {}

    const request = new Request(sql, (error) => {
      if (answered) return
      answered = true
      clearTimeout(patience)
      if (stopped) resume(Effect.succeed("stopped"))
      else if (error) resume(Effect.fail(requestFailure(error, rows > 0)))
      else resume(Effect.succeed("complete"))
      acknowledged()
    })

    /** Tells the engine to stop. Closing the connection also ends the request, whatever the engine does. */
    const stop = () => {
      patience ??= setTimeout(() => wire.close(), patienceMs)
      request.cancel()
    }
    const stopEarly = () => {
      if (stopped) return
      stopped = true
      stop()
    }

    request.on("columnMetadata", (columns) => {
      sets++
      if (sets === 1) sink?.columns(readColumns(Object.values(columns)))
      else if (sink !== undefined) stopEarly()
    })
    request.on("row", (cells: ReadonlyArray<Cell>) => {
      if (sets !== 1 || stopped || sink === undefined) return
      if (!sink.row(cells)) stopEarly()
      rows++
    })
    wire.maxCellBytes = maxCellBytes
    addParameters(request, params, nameOf)
    if (kind === "batch") wire.execSqlBatch(request)
    else wire.execSql(request)

    return Effect.async<void>((done) => {
      if (answered) {
        done(Effect.void)
        return
      }
      acknowledged = () => done(Effect.void)
      stop()
    })
  })
