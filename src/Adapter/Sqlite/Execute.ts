/**
 * Runs one statement on an open database inside the child process. Also the workbook child's way of running
 * statements, so that policy, limits, values and errors are the same there.
 */
import type Database from "better-sqlite3"
import { type Column, RowBuilder, type RowSet } from "../../Rows.js"
import type { Refusal, StatementRequest } from "./Protocol.js"
import { parametersOf, withoutBeginning } from "./Tokens.js"
import { type Native, replacementNote, toBinding, toCell } from "./Value.js"

/** A refusal on its way to the reply. */
export class Refused extends Error {
  readonly refusal: Refusal
  constructor(refusal: Refusal) {
    super(refusal.message)
    this.refusal = refusal
  }
}

/** Longest wait for another process' lock, however long a call may take. */
const longestWaitMs = 5000

/** How long the engine may wait for a lock from now on. */
export const lockWaitMs = ({ lockDeadline }: StatementRequest): number =>
  Math.max(0, Math.min(longestWaitMs, Math.ceil(lockDeadline - Date.now())))

const prepare = (
  database: Database.Database,
  sql: string,
  waitedEnoughAt: number
): Database.Statement<Array<unknown>, unknown> => {
  // SQLite reads a statement up to its first NUL; what follows would be dropped without a word.
  if (sql.includes("\u0000"))
    throw new Refused({ stage: "prepare", code: "NUL", message: "The statement holds a NUL character." })
  try {
    return database.prepare<Array<unknown>, unknown>(sql)
  } catch (error) {
    const refusal = describe("prepare", error)
    if (refusal.code !== "SQLITE_ERROR") throw new Refused(refusal)
  }
  // While another process holds the file, SQLite judges names by the schema it read before: wait, and ask again.
  try {
    database.pragma(`busy_timeout = ${Math.max(0, Math.ceil(waitedEnoughAt - performance.now()))}`)
    database.pragma("schema_version")
  } catch (error) {
    throw new Refused(describe("run", error))
  }
  try {
    return database.prepare<Array<unknown>, unknown>(sql)
  } catch (error) {
    throw new Refused(describe("prepare", error))
  }
}

const describe = (stage: Refusal["stage"], error: unknown): Refusal => {
  if (!(error instanceof Error)) return { stage, code: "UNKNOWN", message: String(error) }
  const code = "code" in error && typeof error.code === "string" ? error.code : error.constructor.name
  return { stage, code, message: error.message }
}

/** The values in the two forms that the driver binds: by order for `?`, by number for `?N`. */
const bindings = (request: StatementRequest): Array<unknown> => {
  const { anonymous, count, named, numbered } = parametersOf(request.sql)
  if (named !== undefined)
    throw new Refused({
      stage: "bind",
      code: "NAMED_PARAMETER",
      message: `The parameter ${named} has a name; parameters are given by position.`
    })
  const given = request.params
  const planned = request.kind === "explain" && given.length === 0
  if (given.length !== count && !planned)
    throw new Refused({
      stage: "bind",
      code: "PARAMETER_COUNT",
      message: `The statement asks for ${count} parameter${count === 1 ? "" : "s"}, ${given.length} given.`
    })
  const at = (position: number) => toBinding(given[position - 1] ?? null)
  const byNumber = Object.fromEntries([...numbered].map((position) => [position, at(position)]))
  return [...anonymous.map(at), ...(numbered.size > 0 ? [byNumber] : [])]
}

const columnsOf = (statement: Database.Statement<Array<unknown>, unknown>): Array<Column> =>
  statement.columns().map(({ name, type }) => ({ name, type }))

/** Hooks with which the workbook child adds what SQLite itself does not know. */
export interface Hooks {
  readonly columns?: (columns: ReadonlyArray<Column>) => ReadonlyArray<Column>
  readonly cell?: (value: Native, index: number, columns: ReadonlyArray<Column>) => Native | boolean
  readonly notes?: () => ReadonlyArray<string>
}

/** How often a statement is run anew because its columns changed meanwhile. */
const mostRuns = 3

/**
 * A statement is prepared by the schema that was read last, and reads the file's own when it runs: where another process
 * has changed that, the columns told before are not those of the rows.
 */
const isStale = (database: Database.Database, sql: string, columns: ReadonlyArray<Column>): boolean => {
  // Nobody else changes a database in memory.
  if (database.memory) return false
  try {
    const now = columnsOf(database.prepare<Array<unknown>, unknown>(sql))
    return JSON.stringify(now) !== JSON.stringify(columns)
  } catch {
    return true
  }
}

const run = (database: Database.Database, request: StatementRequest, hooks: Hooks, runs: number): RowSet => {
  const wait = lockWaitMs(request)
  const waitedEnoughAt = performance.now() + wait
  database.pragma(`busy_timeout = ${wait}`)
  const checked = prepare(database, request.sql, waitedEnoughAt)
  if (!checked.readonly)
    throw new Refused({ stage: "prepare", code: "WRITES", message: "The statement would write." })
  if (!checked.reader)
    throw new Refused({ stage: "prepare", code: "NO_ROWS", message: "The statement returns no rows." })
  const sql = request.kind === "explain" ? `EXPLAIN QUERY PLAN ${withoutBeginning(request.sql)}` : request.sql
  const statement = request.kind === "explain" ? prepare(database, sql, waitedEnoughAt) : checked
  const values = bindings(request)
  const own = columnsOf(statement)
  const columns = hooks.columns?.(own) ?? own
  const builder = new RowBuilder(columns, request.limits)
  try {
    statement.raw(true).safeIntegers(true)
    for (const row of statement.iterate(...values)) {
      if (!Array.isArray(row)) continue
      const cells = row.map((value: Native, index) => {
        const seen = hooks.cell?.(value, index, columns) ?? value
        if (typeof seen === "string" && seen.includes("\ufffd")) builder.note(replacementNote)
        return typeof seen === "boolean" ? seen : toCell(seen)
      })
      if (!builder.add(cells)) break
    }
  } catch (error) {
    throw error instanceof Refused ? error : new Refused(describe("run", error))
  }
  if (runs < mostRuns && isStale(database, sql, own)) return run(database, request, hooks, runs + 1)
  for (const note of hooks.notes?.() ?? []) builder.note(note)
  return builder.finish()
}

export const execute = (database: Database.Database, request: StatementRequest, hooks: Hooks = {}): RowSet =>
  run(database, request, hooks, 1)

/** The refusal that any thrown value amounts to. */
export const refusalOf = (error: unknown): Refusal =>
  error instanceof Refused ? error.refusal : describe("run", error)
