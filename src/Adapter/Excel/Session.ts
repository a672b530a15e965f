/**
 * One open file: its tables are read into SQLite's memory when a statement first names them, and statements then run
 * there as they do on a database file.
 */
import type Database from "better-sqlite3"
import type { RowSet } from "../../Rows.js"
import Driver from "../Sqlite/Driver.js"
import { execute, type Hooks, Refused, refusalOf } from "../Sqlite/Execute.js"
import type { StatementRequest } from "../Sqlite/Protocol.js"
import { tokens } from "../Sqlite/Tokens.js"
import type { Book } from "./Book.js"
import { columnsTable, objectsTable } from "./Describe.js"
import { moveFormula } from "./Formula.js"
import { type Grid, GridBuilder, type GridSink, maxColumns, StartsFurtherLeft } from "./Grid.js"
import {
  type CatalogTable,
  everything,
  type Inventory,
  namedTables,
  type Resolution,
  resolve,
  type Target
} from "./Names.js"
import { addressOf, lastColumn, lastRow, rangeText } from "./Reference.js"
import { type Reads, readsOf } from "./Statement.js"
import { TableStore } from "./TableStore.js"
import type { ColumnType, Stored } from "./Value.js"
import type { Sheet } from "./WorkbookPart.js"

/** A table in memory. */
interface Loaded {
  /** Its name in SQLite: as the statement that first needed it wrote it. */
  readonly name: string
  readonly grid: Grid
}

/** How many tables are kept; a client that asks for ever new ranges starts over. */
const maxTables = 200

/** SQLite's own folding of names: ASCII only. */
const sqliteFold = (name: string) => name.replace(/[A-Z]/g, (letter) => letter.toLowerCase())

const missingTable = /^no such table: (.*)$/s

const literalText = (token: string) => token.slice(1, -1).replaceAll("''", "'")

const spellingsOf = ({ names, sheets, tables }: Inventory): ReadonlyMap<string, ReadonlyArray<string>> => {
  const all = new Map<string, Set<string>>()
  for (const { name } of [...sheets, ...tables, ...names]) {
    const folded = sqliteFold(name)
    all.set(folded, (all.get(folded) ?? new Set()).add(name))
  }
  return new Map([...all].flatMap(([folded, each]) => (each.size > 1 ? [[folded, [...each]]] : [])))
}

const ignoreRows: GridSink = { widen: () => {}, row: () => {} }

const columnOf = (name: string, type: ColumnType) => ({ name, type, letters: "", errors: 0, uncached: 0 })

const gridOf = (columns: Grid["columns"], rowCount: number): Grid => ({
  columns,
  rowCount,
  headerRow: null,
  leftOut: 0
})

export class Session {
  readonly #book: Book
  readonly #maxBytes: number
  #database: Database.Database
  #store: TableStore
  /** By their folded names, as SQLite finds them. */
  readonly #loaded = new Map<string, Loaded>()
  /** Whole sheets that were read, for `xl_sheets`. */
  readonly #facts = new Map<string, Grid>()
  #sheetFactsComplete = false
  /** The names that SQLite cannot tell apart, by what it takes them for. */
  readonly #spellings: ReadonlyMap<string, ReadonlyArray<string>>
  #read = false

  constructor(book: Book, maxBytes: number) {
    this.#book = book
    this.#maxBytes = maxBytes
    this.#spellings = spellingsOf(book.inventory)
    this.#database = this.#open()
    this.#store = new TableStore(this.#database)
  }

  close(): void {
    this.#database.close()
  }

  /** Whether cells were read since the last time this was asked. */
  takeRead(): boolean {
    const read = this.#read
    this.#read = false
    return read
  }

  async run(request: StatementRequest): Promise<RowSet> {
    const { sql } = request
    if (this.#loaded.size > maxTables) this.#forget()
    // `execute` refuses such a text; SQLite would only see its beginning.
    if (sql.includes("\u0000")) return execute(this.#database, request)
    await this.#loadPragmaNames(sql)
    await this.#describe(sql)
    const statement = await this.#prepare(sql)
    if (statement === undefined || request.kind === "explain" || !statement.reader)
      return this.#readOnly(() => execute(this.#database, request))
    const reads = readsOf(this.#database, sql)
    await this.#completeSheets(reads)
    return this.#readOnly(() => execute(this.#database, request, this.#hooks(statement, reads)))
  }

  /** Nothing that a statement can do may change what the next one reads. */
  #readOnly<A>(use: () => A): A {
    this.#database.pragma("query_only = ON")
    try {
      return use()
    } finally {
      this.#database.pragma("query_only = OFF")
    }
  }

  #open(): Database.Database {
    const database = new Driver(":memory:")
    const pageSize = Number(database.pragma("page_size", { simple: true }))
    database.pragma(`max_page_count = ${Math.floor(this.#maxBytes / pageSize)}`)
    return database
  }

  #forget() {
    this.#database.close()
    this.#database = this.#open()
    this.#store = new TableStore(this.#database)
    this.#loaded.clear()
    this.#sheetFactsComplete = false
  }

  /** The prepared statement once every table that it names is there; undefined where `execute` will say what is wrong. */
  async #prepare(sql: string): Promise<Database.Statement<Array<unknown>, unknown> | undefined> {
    this.#hideRivals()
    const asked = new Set<string>()
    for (;;) {
      try {
        const statement = this.#database.prepare<Array<unknown>, unknown>(sql)
        this.#refuseRivals(sql, asked)
        return statement
      } catch (error) {
        if (error instanceof Refused) throw error
        const name = error instanceof Error ? missingTable.exec(error.message)?.[1] : undefined
        if (name === undefined || asked.has(name)) return undefined
        asked.add(name)
        await this.#provide(name)
      }
    }
  }

  /** Reads the table that SQLite misses, or says why there is none. */
  async #provide(missing: string): Promise<void> {
    const { inventory } = this.#book
    let name = missing
    let resolution = resolve(inventory, name)
    if (resolution.kind === "unknown" && /^main\./i.test(name)) {
      name = name.slice(5)
      resolution = resolve(inventory, name)
    }
    if (resolution.kind === "no_table")
      throw new Refused({
        stage: "prepare",
        code: "SQLITE_ERROR",
        message: `no such table: ${missing}. ${resolution.message}`
      })
    if (resolution.kind === "unknown")
      throw new Refused({
        stage: "prepare",
        code: "SQLITE_ERROR",
        message: `no such table: ${missing}`
      })
    try {
      await this.#load(name, resolution)
    } catch (error) {
      // Full: what is there may make room.
      if (refusalOf(error).code !== "SQLITE_FULL" || this.#loaded.size === 0) throw error
      this.#forget()
      await this.#load(name, resolution)
    }
  }

  async #load(name: string, resolution: Resolution): Promise<void> {
    if (resolution.kind === "catalog") return this.#loadCatalog(name, resolution.table)
    if (resolution.kind !== "target") return
    const hidden = this.#loaded.get(sqliteFold(rivalName(name)))
    if (hidden !== undefined && hidden.name === rivalName(name)) {
      this.#rename(hidden, name)
      return
    }
    const { target } = resolution
    let left: number | undefined
    for (;;) {
      const table = this.#store.begin()
      try {
        const grid = await this.#readGrid(target, table.sink, left)
        table.finish(name, grid)
        this.#loaded.set(sqliteFold(name), { name, grid })
        if (isWholeSheet(target)) this.#facts.set(target.sheet.name, grid)
        return
      } catch (error) {
        if (!(error instanceof StartsFurtherLeft)) throw error
        table.abandon()
        left = error.left
      }
    }
  }

  async #readGrid(target: Target, sink: GridSink, left?: number): Promise<Grid> {
    const { range, reading, sheet, wholeRange } = target
    this.#read = true
    const builder = new GridBuilder(range, wholeRange, reading, sink, left, this.#book.textsAreParsed)
    // The used area of raw cells is that of the whole sheet.
    const everything = reading.header === "letters"
    const more = await this.#book.read(sheet, {
      left: everything ? 1 : range.left,
      right: everything ? lastColumn : range.right,
      bottom: range.bottom,
      formulas: false,
      row: (row) => builder.add(row)
    })
    return builder.finish(more)
  }

  // ---- the tables that a catalog is read by

  async #describe(sql: string): Promise<void> {
    const { inventory, textsAreParsed } = this.#book
    if (sql.includes(objectsTable))
      this.#replace(
        objectsTable,
        [
          columnOf("kind", "TEXT"),
          columnOf("name", "TEXT"),
          columnOf("range", "TEXT"),
          columnOf("hidden", "INTEGER")
        ],
        namedTables(inventory).map(({ hidden, kind, name, range }) => [
          textsAreParsed ? "table" : kind,
          name,
          range,
          hidden ? 1n : 0n
        ])
      )
    if (!sql.includes(columnsTable)) return
    const names = [...tokens(sql)].flatMap(({ kind, text }) => (kind === "string" ? [literalText(text)] : []))
    const rows: Array<ReadonlyArray<Stored>> = []
    for (const name of new Set(names)) {
      const resolution = resolve(inventory, name)
      if (resolution.kind !== "target") continue
      const grid = await this.#gridOf(name, resolution.target, names.length === 1)
      const header = grid.headerRow === null ? null : BigInt(grid.headerRow)
      for (const [index, column] of grid.columns.entries())
        rows.push([
          name,
          BigInt(index),
          column.name,
          column.type,
          column.letters,
          header,
          BigInt(grid.rowCount)
        ])
    }
    this.#replace(
      columnsTable,
      [
        columnOf("object", "TEXT"),
        columnOf("position", "INTEGER"),
        columnOf("name", "TEXT"),
        columnOf("type", "TEXT"),
        columnOf("letter", "TEXT"),
        columnOf("header_row", "INTEGER"),
        columnOf("rows", "INTEGER")
      ],
      rows
    )
  }

  /** One that is asked for alone is likely to be queried next, and is kept. */
  async #gridOf(name: string, target: Target, keep: boolean): Promise<Grid> {
    const loaded = () => {
      const found = this.#loaded.get(sqliteFold(name))
      return found?.name === name ? found.grid : undefined
    }
    if (keep && loaded() === undefined) await this.#provide(name)
    return loaded() ?? (isWholeSheet(target) ? this.#factsOf(target.sheet) : this.#factsOfTarget(target))
  }

  #replace(name: string, columns: Grid["columns"], rows: ReadonlyArray<ReadonlyArray<Stored>>) {
    if (!this.#loaded.has(name)) return this.#fill(name, columns, rows)
    this.#database.exec(`DELETE FROM "${name}"`)
    const places = columns.map(() => "?").join()
    const insert = this.#database.prepare(`INSERT INTO "${name}" VALUES (${places})`)
    for (const row of rows) insert.run(...row)
  }

  // ---- the tables that describe the workbook

  async #loadCatalog(name: string, table: CatalogTable): Promise<void> {
    const { names, sheets, tables } = this.#book.inventory
    switch (table) {
      case "xl_sheets":
        this.#fill(
          name,
          [
            columnOf("name", "TEXT"),
            columnOf("hidden", "BOOLEAN"),
            columnOf("rows", "INTEGER"),
            columnOf("columns", "INTEGER"),
            columnOf("header_row", "INTEGER")
          ],
          sheets.map((sheet) => [sheet.name, sheet.hidden ? 1n : 0n, null, null, null])
        )
        this.#sheetFactsComplete = false
        return
      case "xl_tables":
        this.#fill(
          name,
          [columnOf("name", "TEXT"), columnOf("sheet", "TEXT"), columnOf("range", "TEXT")],
          tables.map((each) => [each.name, each.sheet, rangeText(each.range)])
        )
        return
      case "xl_names":
        this.#fill(
          name,
          [columnOf("name", "TEXT"), columnOf("scope", "TEXT"), columnOf("refers_to", "TEXT")],
          names.map((each) => [each.name, each.scope, each.refersTo])
        )
        return
      case "xl_formulas":
        return this.#loadFormulas(name)
    }
  }

  #fill(name: string, columns: Grid["columns"], rows: ReadonlyArray<ReadonlyArray<Stored>>) {
    const table = this.#store.begin()
    table.sink.widen(columns.length)
    for (const [index, row] of rows.entries()) table.sink.row(index + 1, row, row.length)
    const grid = gridOf(columns, rows.length)
    table.finish(name, grid)
    this.#loaded.set(sqliteFold(name), { name, grid })
  }

  /** The size of a sheet takes reading it, so `xl_sheets` has it only once a statement asks for it. */
  async #completeSheets({ tables }: Reads): Promise<void> {
    const loaded = this.#loaded.get("xl_sheets")
    const columns = loaded === undefined ? undefined : tables.get(loaded.name)
    if (columns === undefined || this.#sheetFactsComplete || this.#isSheet("xl_sheets")) return
    if (![...columns].some((column) => column >= 2)) return
    const update = this.#database.prepare(
      'UPDATE xl_sheets SET "rows" = ?, columns = ?, header_row = ? WHERE rowid = ?'
    )
    for (const [index, sheet] of this.#book.inventory.sheets.entries()) {
      const grid = await this.#factsOf(sheet)
      // A sheet without cells has the one column that a table must have.
      const width = grid.rowCount === 0 && grid.headerRow === null ? 0 : grid.columns.length
      const header = grid.headerRow === null ? null : BigInt(grid.headerRow)
      update.run(BigInt(grid.rowCount), BigInt(width), header, index + 1)
    }
    this.#sheetFactsComplete = true
  }

  #isSheet(name: string) {
    return this.#book.inventory.sheets.some((sheet) => sqliteFold(sheet.name) === name)
  }

  async #factsOf(sheet: Sheet): Promise<Grid> {
    const known = this.#facts.get(sheet.name)
    if (known !== undefined) return known
    const resolution = resolve({ sheets: [sheet], tables: [], names: [] }, sheet.name)
    if (resolution.kind !== "target") throw new Error("A sheet is no table.")
    const grid = await this.#factsOfTarget(resolution.target)
    this.#facts.set(sheet.name, grid)
    return grid
  }

  /** What a table would be, without its rows. */
  async #factsOfTarget(target: Target, left?: number): Promise<Grid> {
    try {
      return await this.#readGrid(target, ignoreRows, left)
    } catch (error) {
      if (!(error instanceof StartsFurtherLeft)) throw error
      return this.#factsOfTarget(target, error.left)
    }
  }

  async #loadFormulas(name: string): Promise<void> {
    const table = this.#store.begin()
    table.sink.widen(4)
    let count = 0
    this.#read = true
    for (const sheet of this.#book.inventory.sheets) {
      const masters = new Map<string, { text: string; row: number; column: number }>()
      await this.#book.read(sheet, {
        left: 1,
        right: lastColumn,
        bottom: lastRow,
        formulas: true,
        row: (row) => {
          for (let at = 0; at < row.count; at++) {
            const formula = row.formulas[at]
            if (formula === undefined) continue
            const column = row.columns[at] ?? 0
            const { shared, type } = formula
            let text: string | null = formula.text === "" ? null : formula.text
            if (type === "shared" && shared !== undefined) {
              const master = masters.get(shared)
              if (text !== null) masters.set(shared, { text, row: row.number, column })
              else if (master !== undefined)
                text = moveFormula(master.text, row.number - master.row, column - master.column)
            }
            table.sink.row(
              ++count,
              [sheet.name, addressOf(row.number, column), text, row.values[at] ?? null],
              4
            )
          }
        }
      })
    }
    const grid = gridOf(
      [
        columnOf("sheet", "TEXT"),
        columnOf("cell", "TEXT"),
        columnOf("formula", "TEXT"),
        columnOf("value", "ANY")
      ],
      count
    )
    table.finish(name, grid)
    this.#loaded.set(sqliteFold(name), { name, grid })
  }

  /** A pragma about a table that is not there answers nothing, rather than saying that it is missing. */
  async #loadPragmaNames(sql: string): Promise<void> {
    if (!/pragma/i.test(sql)) return
    for (const { kind, text } of tokens(sql)) {
      if (kind !== "word" && kind !== "quoted" && kind !== "string") continue
      const name = kind === "string" ? literalText(text) : text
      if (this.#loaded.has(sqliteFold(name))) continue
      const resolution = resolve(this.#book.inventory, name)
      if (resolution.kind === "target" || resolution.kind === "catalog") await this.#load(name, resolution)
    }
  }

  // ---- names that differ only in case

  /** SQLite finds `sales` by `Sales`; where a workbook has both, each statement must find its own anew. */
  #hideRivals() {
    for (const loaded of this.#loaded.values())
      if (!isHidden(loaded.name) && this.#rivals(loaded.name).length > 1)
        this.#rename(loaded, rivalName(loaded.name))
  }

  #rename(loaded: Loaded, name: string) {
    this.#store.rename(loaded.name, name)
    this.#loaded.delete(sqliteFold(loaded.name))
    this.#loaded.set(sqliteFold(name), { ...loaded, name })
  }

  /** The spellings of a name that mean different things. */
  #rivals(name: string): ReadonlyArray<string> {
    return this.#spellings.get(sqliteFold(name)) ?? []
  }

  /** Two of them in one statement would both be the one that was found first. */
  #refuseRivals(sql: string, asked: ReadonlySet<string>) {
    for (const name of asked) {
      const rivals = this.#rivals(name)
      if (rivals.length < 2) continue
      const other = [...tokens(sql)].find(
        ({ kind, text }) => (kind === "word" || kind === "quoted") && text !== name && rivals.includes(text)
      )
      if (other !== undefined)
        throw new Refused({
          stage: "prepare",
          code: "AMBIGUOUS_TABLE",
          message: `The names "${name}" and "${other.text}" differ only in case; one statement can use one of them.`
        })
    }
  }

  // ---- what SQLite itself does not know

  #hooks(statement: Database.Statement<Array<unknown>, unknown>, reads: Reads): Hooks {
    const types = statement.columns().map(({ column, table }) => {
      const grid = table === null ? undefined : this.#loaded.get(sqliteFold(table))?.grid
      return grid?.columns.find(({ name }) => name === column)?.type
    })
    return {
      columns: (columns) =>
        columns.map((column, index) =>
          types[index] === "BOOLEAN" ? { ...column, type: "BOOLEAN" } : column
        ),
      cell: (value, index) =>
        typeof value === "bigint" && types[index] === "BOOLEAN" ? value !== 0n : value,
      notes: () => this.#notes(reads)
    }
  }

  #notes({ schema, tables }: Reads): ReadonlyArray<string> {
    const notes: Array<string> = []
    for (const [name, columns] of tables) {
      const grid = this.#loaded.get(sqliteFold(name))?.grid
      if (grid === undefined) continue
      const read = [...columns].flatMap((index) => grid.columns[index] ?? [])
      const sum = (count: (column: Grid["columns"][number]) => number) =>
        read.reduce((total, column) => total + count(column), 0)
      const errors = sum((column) => column.errors)
      const uncached = sum((column) => column.uncached)
      if (errors > 0)
        notes.push(
          errors === 1
            ? `[${name}]: 1 cell holds an error value and answers null.`
            : `[${name}]: ${errors} cells hold an error value and answer null.`
        )
      if (uncached > 0)
        notes.push(
          `[${name}]: ${uncached === 1 ? "1 formula has" : `${uncached} formulas have`} no cached value and ${uncached === 1 ? "answers" : "answer"} null; saving the file in a spreadsheet program fills it in.`
        )
      if (grid.leftOut > 0)
        notes.push(
          `[${name}]: ${grid.leftOut === 1 ? "1 cell is" : `${grid.leftOut} cells are`} left out, beyond the ${maxColumns} columns that a table can have; a range such as [Sheet!XFA1:XFD9] reaches them.`
        )
    }
    if (schema)
      notes.push(
        "sqlite_schema lists only the tables that were read so far; xl_sheets, xl_tables and xl_names list all."
      )
    return notes
  }
}

const hiddenMark = "\u0002"
/** A table out of reach, under a name that tells spellings apart. */
const rivalName = (name: string) => `${hiddenMark}${Buffer.from(name).toString("hex")}`
const isHidden = (name: string) => name.startsWith(hiddenMark)

const isWholeSheet = ({ range, reading }: Target) => reading.header === "find" && range === everything
