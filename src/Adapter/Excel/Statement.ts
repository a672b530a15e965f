/** What a statement reads, by the program that SQLite would run for it. */
import type Database from "better-sqlite3"
import { parametersOf, withoutBeginning } from "../Sqlite/Tokens.js"

/** Columns read (by position) of each table that is opened, by the table's name in `sqlite_schema`. */
export interface Reads {
  readonly tables: ReadonlyMap<string, ReadonlySet<number>>
  /** Whether SQLite's own list of tables is read. */
  readonly schema: boolean
}

interface Instruction {
  readonly opcode: string
  readonly p1: number
  readonly p2: number
  readonly p3: number
}

const nothing: Reads = { tables: new Map(), schema: false }

const isInstruction = (row: unknown): row is Instruction =>
  typeof row === "object" && row !== null && "opcode" in row && "p1" in row && "p2" in row && "p3" in row

/** The statement must be one that `prepare` takes. */
export const readsOf = (database: Database.Database, sql: string): Reads => {
  const statement = withoutBeginning(sql)
  if (/^(explain|pragma)\b/i.test(statement)) return nothing
  const { anonymous, named, numbered } = parametersOf(sql)
  if (named !== undefined) return nothing
  const values: Array<unknown> = anonymous.map(() => null)
  if (numbered.size > 0) values.push(Object.fromEntries([...numbered].map((position) => [position, null])))
  const program = database.prepare<Array<unknown>, unknown>(`EXPLAIN ${statement}`).all(...values)
  const names = new Map(
    database
      .prepare<[], [number, string]>("SELECT rootpage, name FROM sqlite_schema WHERE type = 'table'")
      .raw(true)
      .all()
  )
  const cursors = new Map<number, number>()
  const tables = new Map<string, Set<number>>()
  let schema = false
  for (const instruction of program) {
    if (!isInstruction(instruction)) continue
    const { opcode, p1, p2, p3 } = instruction
    if (opcode === "OpenRead" && p3 === 0) {
      cursors.set(p1, p2)
      const name = names.get(p2)
      if (p2 === 1) schema = true
      if (name !== undefined && !tables.has(name)) tables.set(name, new Set())
    } else if (opcode === "OpenDup") {
      const root = cursors.get(p2)
      if (root !== undefined) cursors.set(p1, root)
    } else if (opcode === "Column") tables.get(names.get(cursors.get(p1) ?? -1) ?? "")?.add(p2)
  }
  return { tables, schema }
}
