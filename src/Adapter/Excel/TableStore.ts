/**
 * The tables of a workbook in SQLite's memory. Rows are inserted into columns that take any value; when a sheet has
 * been read its table gets the names and types that were found, by its definition in `sqlite_schema` alone. That is
 * sound, since every value already is of its column's type (SQLite keeps a whole REAL as an integer itself), and it
 * spares a copy of the rows; it also lets a sheet be called `sqlite_…`.
 */
import type Database from "better-sqlite3"
import type { Conversion, Grid, GridSink } from "./Grid.js"
import { damaged } from "./Problem.js"
import { type ColumnType, isoText, type Stored } from "./Value.js"

const isConstraint = (error: unknown) =>
  error instanceof Error &&
  "code" in error &&
  typeof error.code === "string" &&
  error.code.startsWith("SQLITE_CONSTRAINT")

const quote = (name: string) => `"${name.replaceAll('"', '""')}"`

const sqlType = (type: ColumnType) => (type === "BOOLEAN" ? "INTEGER" : type)

/** Rows wait here under a name that no sheet has: it holds a character that XML cannot. */
const loading = "\u0001loading"

const looseColumns = (count: number) => Array.from({ length: count }, (_, i) => `c${i} ANY`).join()

const sqlFunctions: Readonly<Record<Conversion, string>> = {
  integer: "CAST(# AS INTEGER)",
  real: "xl_number(#)",
  moment: "xl_moment(#)"
}

export class TableStore {
  readonly #database: Database.Database
  readonly #definitions = new Map<string, string>()

  constructor(database: Database.Database) {
    this.#database = database
    const convert = (name: string, to: (text: string) => number | string) =>
      database.function(name, { deterministic: true, directOnly: true }, (text: unknown) =>
        typeof text === "string" ? to(text) : null
      )
    // SQLite's own reading of a decimal may miss the nearest double.
    convert("xl_number", Number)
    convert("xl_moment", (text) => isoText(text, "number"))
    // Nothing is ever rolled back: a store that failed is thrown away whole.
    database.pragma("journal_mode = OFF")
  }

  /** Begins a table. Its rows go into the sink; `finish` makes it a table, `abandon` forgets them. */
  begin(): TableDraft {
    return new TableDraft(this.#database, (to, columns) => {
      this.#definitions.set(to, columns)
      redefine(this.#database, loading, to, columns)
    })
  }

  rename(from: string, to: string): void {
    const columns = this.#definitions.get(from) ?? ""
    this.#definitions.delete(from)
    this.#definitions.set(to, columns)
    redefine(this.#database, from, to, columns)
  }
}

/** Gives a table another name, or other columns over the same rows. */
const redefine = (database: Database.Database, from: string, to: string, columns: string) => {
  database.unsafeMode(true)
  try {
    database.pragma("writable_schema = ON")
    database
      .prepare("UPDATE sqlite_schema SET name = ?, tbl_name = ?, sql = ? WHERE name = ?")
      .run(to, to, `CREATE TABLE ${quote(to)} (${columns}) STRICT`, from)
    // Also has SQLite read the definitions again.
    database.pragma("writable_schema = RESET")
  } finally {
    database.unsafeMode(false)
  }
}

/** Most columns that rows are inserted with before a column has shown to be in use. */
const firstWidth = 128
/** A column in which this many cells have come is in use; one with fewer is filled at the end. */
const fewCells = 16

/** Cells of one row beyond those stored with it. */
interface StrayCells {
  readonly row: number
  readonly columns: ReadonlyArray<number>
  readonly values: ReadonlyArray<Stored>
}

/**
 * A table that is being read. Every row is stored with as many fields as the rows in general have, not with as many as
 * the widest one: a lone cell far to the right would make each row of a long sheet a thousand bytes longer.
 */
export class TableDraft {
  readonly #database: Database.Database
  readonly #publish: (name: string, columns: string) => void
  /** How many columns the table has. */
  #width = 0
  /** How many of them rows are inserted with; 0 before there is a table. */
  #stored = 0
  #insert: Database.Statement<Array<unknown>> | undefined
  #bindings: Array<unknown> = []
  #inTransaction = false
  readonly #strays: Array<StrayCells> = []
  readonly #strayCounts: Array<number> = []

  constructor(database: Database.Database, publish: (name: string, columns: string) => void) {
    this.#database = database
    this.#publish = publish
  }

  readonly sink: GridSink = {
    widen: (columns) => {
      this.#width = columns
    },
    row: (number, cells, used) => {
      if (used > this.#stored || this.#stored === 0) this.#beyond(number, cells, used)
      this.#insert ??= this.#prepare()
      if (!this.#inTransaction) this.#database.exec("BEGIN")
      this.#inTransaction = true
      const stored = this.#stored
      for (let i = 0; i < stored; i++) this.#bindings[i] = cells[i]
      this.#bindings[stored] = number
      try {
        this.#insert.run(this.#bindings)
      } catch (error) {
        throw isConstraint(error) ? damaged("a row of a sheet stands there twice.") : error
      }
    }
  }

  finish(name: string, grid: Grid): void {
    this.#store(grid.columns.length)
    this.#fillStrays()
    this.#convert(grid)
    this.#publish(name, grid.columns.map((column) => `${quote(column.name)} ${sqlType(column.type)}`).join())
  }

  abandon(): void {
    this.#end()
    if (this.#stored > 0) this.#database.exec(`DROP TABLE ${quote(loading)}`)
    this.#stored = 0
  }

  /** Cells beyond the stored columns: kept aside while they are few, or else their columns are stored from here on. */
  #beyond(row: number, cells: ReadonlyArray<Stored>, used: number) {
    if (this.#stored === 0) this.#store(Math.min(Math.max(1, this.#width), firstWidth))
    let stored = this.#stored
    for (let column = stored; column < used; column++) {
      if ((cells[column] ?? null) === null) continue
      const count = (this.#strayCounts[column] ?? 0) + 1
      this.#strayCounts[column] = count
      if (count > fewCells) stored = column + 1
    }
    if (stored > this.#stored) this.#store(stored)
    const columns: Array<number> = []
    for (let column = stored; column < used; column++)
      if ((cells[column] ?? null) !== null) columns.push(column)
    if (columns.length > 0)
      this.#strays.push({ row, columns, values: columns.map((column) => cells[column] ?? null) })
  }

  #store(columns: number) {
    this.#end()
    if (this.#stored === 0)
      this.#database.exec(`CREATE TABLE ${quote(loading)} (${looseColumns(columns)}) STRICT`)
    else if (columns > this.#stored) redefine(this.#database, loading, loading, looseColumns(columns))
    this.#stored = Math.max(columns, this.#stored)
    this.#insert = undefined
  }

  #prepare() {
    const names = Array.from({ length: this.#stored }, (_, i) => `c${i},`).join("")
    this.#bindings = new Array(this.#stored + 1).fill(null)
    return this.#database.prepare<Array<unknown>>(
      `INSERT INTO ${quote(loading)} (${names}rowid) VALUES (${"?,".repeat(this.#stored)}?)`
    )
  }

  #end() {
    if (this.#inTransaction) this.#database.exec("COMMIT")
    this.#inTransaction = false
  }

  #fillStrays() {
    if (this.#strays.length === 0) return
    this.#database.exec("BEGIN")
    let sets = ""
    let update: Database.Statement<Array<unknown>> | undefined
    for (const { columns, row, values } of this.#strays) {
      const wanted = columns.map((column) => `c${column} = ?`).join()
      if (update === undefined || wanted !== sets) {
        sets = wanted
        update = this.#database.prepare(`UPDATE ${quote(loading)} SET ${sets} WHERE rowid = ?`)
      }
      update.run([...values, row])
    }
    this.#database.exec("COMMIT")
  }

  /** Texts become numbers, or dates of one form, in the columns where all of them are. */
  #convert({ columns }: Grid) {
    const sets = columns.flatMap(({ conversion }, i) =>
      conversion === undefined ? [] : [`c${i} = ${sqlFunctions[conversion].replace("#", `c${i}`)}`]
    )
    if (sets.length > 0) this.#database.exec(`UPDATE ${quote(loading)} SET ${sets.join()}`)
  }
}
