/**
 * The tables of a workbook in SQLite's memory. Rows are inserted into columns that take any value; when a sheet has
 * been read its table gets the names and types that were found, by its definition in `sqlite_schema` alone. That is
 * sound, since every value already is of its column's type (SQLite keeps a whole REAL as an integer itself), and it
 * spares a copy of the rows; it also lets a sheet be called `sqlite_…`.
 */
import type Database from "better-sqlite3"
import type { Conversion, Grid, GridSink } from "./Grid.js"
import { type ColumnType, isoText, type Stored } from "./Value.js"

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
  begin(): {
    readonly sink: GridSink
    readonly finish: (name: string, grid: Grid) => void
    readonly abandon: () => void
  } {
    const database = this.#database
    let width = 0
    let insert: Database.Statement<Array<unknown>> | undefined
    let bindings: Array<unknown> = []
    let began = false

    const widen = (columns: number) => {
      if (width === 0) database.exec(`CREATE TABLE ${quote(loading)} (${looseColumns(columns)}) STRICT`)
      else
        this.#redefine(loading, loading, `CREATE TABLE ${quote(loading)} (${looseColumns(columns)}) STRICT`)
      width = columns
      insert = undefined
    }
    const prepared = () => {
      const names = Array.from({ length: width }, (_, i) => `c${i}`).join()
      const places = "?,".repeat(width)
      bindings = new Array(width + 1).fill(null)
      return database.prepare<Array<unknown>>(
        `INSERT INTO ${quote(loading)} (${names},rowid) VALUES (${places}?)`
      )
    }
    const end = () => {
      if (began) database.exec("COMMIT")
      began = false
    }
    return {
      sink: {
        widen: (columns) => {
          end()
          widen(columns)
        },
        row: (number: number, cells: ReadonlyArray<Stored>) => {
          insert ??= prepared()
          if (!began) database.exec("BEGIN")
          began = true
          for (let i = 0; i < width; i++) bindings[i] = cells[i]
          bindings[width] = number
          insert.run(bindings)
        }
      },
      finish: (name, grid) => {
        end()
        this.#convert(grid)
        const columns = grid.columns.map((column) => `${quote(column.name)} ${sqlType(column.type)}`).join()
        this.#definitions.set(name, columns)
        this.#redefine(loading, name, `CREATE TABLE ${quote(name)} (${columns}) STRICT`)
      },
      abandon: () => {
        end()
        if (width > 0) database.exec(`DROP TABLE ${quote(loading)}`)
        width = 0
      }
    }
  }

  rename(from: string, to: string): void {
    const columns = this.#definitions.get(from) ?? ""
    this.#definitions.delete(from)
    this.#definitions.set(to, columns)
    this.#redefine(from, to, `CREATE TABLE ${quote(to)} (${columns}) STRICT`)
  }

  /** Texts become numbers, or dates of one form, in the columns where all of them are. */
  #convert({ columns }: Grid) {
    const sets = columns.flatMap(({ conversion }, i) =>
      conversion === undefined ? [] : [`c${i} = ${sqlFunctions[conversion].replace("#", `c${i}`)}`]
    )
    if (sets.length > 0) this.#database.exec(`UPDATE ${quote(loading)} SET ${sets.join()}`)
  }

  #redefine(from: string, to: string, definition: string) {
    const database = this.#database
    database.unsafeMode(true)
    try {
      database.pragma("writable_schema = ON")
      database
        .prepare("UPDATE sqlite_schema SET name = ?, tbl_name = ?, sql = ? WHERE name = ?")
        .run(to, to, definition, from)
      // Also has SQLite read the definitions again.
      database.pragma("writable_schema = RESET")
    } finally {
      database.unsafeMode(false)
    }
  }
}
