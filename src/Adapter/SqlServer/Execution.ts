/** Runs one statement or batch on a connection. Only its first result set is read. */
import * as Effect from "effect/Effect"
import { Request } from "tedious"
import type { AdapterFailure } from "../../QueryError.js"
import type { Cell, Column } from "../../Rows.js"
import { awaitDriver } from "../Owner.js"
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

/** `@p1`, `@p2`, … */
export const parameterName = (position: number) => `p${position}`

/**
 * Answers as soon as no further row is wanted, and on interruption at once: the engine has then been told to stop, and
 * {@link quiesce} waits until it has.
 */
export const execute = (wire: Wire, execution: Execution): Effect.Effect<Ending, AdapterFailure> =>
  awaitDriver((resume) => {
    const { kind, maxCellBytes = 0, nameOf = parameterName, params = [], sink, sql } = execution
    let stopped = false
    let sets = 0
    let rows = 0

    const request = new Request(sql, (error) => {
      if (!stopped) resume(error ? Effect.fail(requestFailure(error, rows > 0)) : Effect.succeed("complete"))
      wire.quiet()
    })

    const stop = () => {
      if (stopped) return
      stopped = true
      request.cancel()
    }
    const stopEarly = () => {
      stop()
      resume(Effect.succeed("stopped"))
    }

    request.on("columnMetadata", (columns) => {
      sets++
      if (sets === 1) sink?.columns(readColumns(Object.values(columns)))
      else if (kind === "statement") stopEarly()
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

    return Effect.sync(stop)
  })

/** Waits for the end of what was told to stop, and says whether it has ended and the connection can be used. */
export const quiesce = (wire: Wire, patienceMs: number): Effect.Effect<boolean> =>
  awaitDriver((resume) => {
    if (wire.idle || wire.closed) {
      resume(Effect.succeed(wire.idle))
      return
    }
    const answer = () => {
      clearTimeout(timer)
      wire.quiet = () => {}
      resume(Effect.succeed(wire.idle))
    }
    const timer = setTimeout(answer, patienceMs)
    wire.quiet = answer
    return Effect.sync(() => clearTimeout(timer))
  })
