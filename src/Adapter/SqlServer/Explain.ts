/**
 * The engine's plan, by SHOWPLAN. While it is on, statements are compiled and not executed; the session is given up
 * afterwards, so that it can never be left on.
 */
import * as Effect from "effect/Effect"
import type { Statement } from "../../Adapter.js"
import { type AdapterFailure, QueryFailed } from "../../QueryError.js"
import { execute, parameterName } from "./Execution.js"
import { typed } from "./Parameter.js"
import type { Wire } from "./Wire.js"

const unsupported = new QueryFailed({
  reason: "engine_error",
  message: "This engine gives no plans by SHOWPLAN.",
  hint: "Run the statement with a small maxRows instead."
})

interface Answer {
  readonly columns: ReadonlyArray<string>
  readonly rows: ReadonlyArray<ReadonlyArray<unknown>>
}

const batch = (wire: Wire, sql: string, maxRows: number, maxCellBytes: number) =>
  Effect.suspend(() => {
    let columns: ReadonlyArray<string> = []
    const rows: Array<ReadonlyArray<unknown>> = []
    const sink = {
      columns: (read: ReadonlyArray<{ readonly name: string }>) => {
        columns = read.map(({ name }) => name)
      },
      row: (cells: ReadonlyArray<unknown>) => rows.push(cells) < maxRows
    }
    return Effect.map(
      execute(wire, { sql, kind: "batch", sink, maxCellBytes }),
      (): Answer => ({ columns, rows })
    )
  })

const column = ({ columns }: Answer, name: string) =>
  columns.findIndex((one) => one.toLowerCase() === name.toLowerCase())

/** One line an operator: its text, indented as the engine does, and what the engine expects of it. */
const planLines = (answer: Answer): ReadonlyArray<string> => {
  const [text, rows, cost] = ["StmtText", "EstimateRows", "TotalSubtreeCost"].map((name) =>
    column(answer, name)
  )
  const cell = (row: ReadonlyArray<unknown>, index: number | undefined) =>
    index === undefined || index < 0 ? null : row[index]
  return answer.rows.map((row) => {
    const estimates = [
      ["rows", cell(row, rows)],
      ["cost", cell(row, cost)]
    ].flatMap(([name, value]) => (value === null || value === undefined ? [] : [`${name}=${value}`]))
    const line = String(cell(row, text) ?? "").trimEnd()
    return estimates.length === 0 ? line : `${line}  (${estimates.join(" ")})`
  })
}

/** Typed as they would be sent; their values do not matter to a plan that is made for any of them. */
const declarations = ({ params }: Statement): string =>
  params.length === 0
    ? ""
    : `DECLARE ${params.map((value, index) => `@${parameterName(index + 1)} ${declaration(value)}`).join(", ")} `

const declaration = (value: unknown): string => {
  const { length, type, value: sent } = typed(value)
  const of = { name: "", output: false, type, value: sent, ...(length === undefined ? {} : { length }) }
  return type.declaration(of)
}

/** Plan mode is proved on a statement of our own before the caller's is sent. */
const proof = "SELECT 1 AS mcp_query_executed"

export const explain = (
  wire: Wire,
  statement: Statement,
  limits: { readonly maxRows: number; readonly maxCellBytes: number }
): Effect.Effect<ReadonlyArray<string>, AdapterFailure> =>
  Effect.gen(function* () {
    yield* execute(wire, { sql: "SET SHOWPLAN_ALL ON", kind: "batch" }).pipe(
      Effect.catchTag("QueryFailed", (failure) =>
        failure.reason === "permission_denied" ? Effect.fail(failure) : Effect.fail(unsupported)
      )
    )
    const shown = yield* batch(wire, proof, 10, limits.maxCellBytes)
    if (column(shown, "StmtText") < 0) return yield* Effect.fail(unsupported)
    const sql = declarations(statement) + statement.sql
    return planLines(yield* batch(wire, sql, limits.maxRows, limits.maxCellBytes))
  })
