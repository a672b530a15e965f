/**
 * The engine's plan, by SHOWPLAN or what Babelfish has in its stead. While it is on, statements are compiled and not executed; the session is given up
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

/** A setting under which an engine answers with plans instead of rows, and the column that holds their text. */
interface PlanMode {
  readonly setting: string
  readonly text: string
  /** Lines about the request rather than the plan. */
  readonly noise?: RegExp
}

const modes: ReadonlyArray<PlanMode> = [
  { setting: "SET SHOWPLAN_ALL ON", text: "StmtText" },
  {
    setting: "SET BABELFISH_SHOWPLAN_ALL ON",
    text: "QUERY PLAN",
    noise: /^$|^Query Text:|^Babelfish T-SQL Batch/
  }
]

/** One line an operator: its text, indented as the engine does, and what the engine expects of it. */
const planLines = (answer: Answer, mode: PlanMode): ReadonlyArray<string> => {
  const [text, rows, cost] = [mode.text, "EstimateRows", "TotalSubtreeCost"].map((name) =>
    column(answer, name)
  )
  const cell = (row: ReadonlyArray<unknown>, index: number | undefined) =>
    index === undefined || index < 0 ? null : row[index]
  return answer.rows.flatMap((row) => {
    const estimates = [
      ["rows", cell(row, rows)],
      ["cost", cell(row, cost)]
    ].flatMap(([name, value]) => (value === null || value === undefined ? [] : [`${name}=${value}`]))
    const line = String(cell(row, text) ?? "").trimEnd()
    if (mode.noise?.test(line)) return []
    return [estimates.length === 0 ? line : `${line}  (${estimates.join(" ")})`]
  })
}

/**
 * Typed as they would be sent; their values do not matter to a plan that is made for any of them. A statement that begins
 * with WITH needs the semicolon.
 */
const declarations = ({ params }: Statement): string =>
  params.length === 0
    ? ""
    : `DECLARE ${params.map((value, index) => `@${parameterName(index + 1)} ${declaration(value)}`).join(", ")}; `

const declaration = (value: unknown): string => {
  const { length, type, value: sent } = typed(value)
  const of = { name: "", output: false, type, value: sent, ...(length === undefined ? {} : { length }) }
  return type.declaration(of)
}

/** A mode is proved on a statement of our own before the caller's is sent. */
const proof = "SELECT 1 AS mcp_query_executed"

/** Whether the session now plans statements instead of executing them. */
const enter = (wire: Wire, mode: PlanMode): Effect.Effect<boolean, AdapterFailure> =>
  Effect.zipRight(execute(wire, { sql: mode.setting, kind: "batch" }), batch(wire, proof, 10, 4096)).pipe(
    Effect.map((answer) => column(answer, mode.text) >= 0),
    Effect.catchTag("QueryFailed", (failure) =>
      failure.reason === "permission_denied" ? Effect.fail(failure) : Effect.succeed(false)
    )
  )

export const explain = (
  wire: Wire,
  statement: Statement,
  limits: { readonly maxRows: number; readonly maxCellBytes: number }
): Effect.Effect<ReadonlyArray<string>, AdapterFailure> =>
  Effect.gen(function* () {
    for (const mode of modes) {
      if (!(yield* enter(wire, mode))) continue
      const sql = declarations(statement) + statement.sql
      return planLines(yield* batch(wire, sql, limits.maxRows, limits.maxCellBytes), mode)
    }
    return yield* Effect.fail(unsupported)
  })
