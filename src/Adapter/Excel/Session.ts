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
import {
  type CatalogContent,
  columnsContent,
  firstSizeColumn,
  formulaColumns,
  namesContent,
  objectsContent,
  readFormulas,
  setSize,
  sheetsContent,
  sizeOf,
  tablesContent
} from "./CatalogTables.js"
import { columnsTable, objectsTable } from "./Describe.js"
import type { Grid } from "./Grid.js"
import { Grids } from "./Grids.js"
import { type CatalogTable, type Resolution, resolve } from "./Names.js"
import { notesOf } from "./Notes.js"
import { hiddenName, isHidden, Rivals, sqliteFold } from "./Rivals.js"
import { type Reads, readsOf } from "./Statement.js"
import { TableStore } from "./TableStore.js"

/** A table in memory. */
interface Loaded {
  /** Its name in SQLite: as the statement that first needed it wrote it. */
  readonly name: string
  readonly grid: Grid
}

/** How many tables are kept; a client that asks for ever new ranges starts over. */
const maxTables = 200

const missingTable = /^no such table: (.*)$/s

const literalText = (token: string) => token.slice(1, -1).replaceAll("''", "'")

export class Session {
  readonly #book: Book
  readonly #maxBytes: number
  #database: Database.Database
  #store: TableStore
  /** By their folded names, as SQLite finds them. */
  readonly #loaded = new Map<string, Loaded>()
  #sheetsComplete = false
  readonly #grids: Grids
  readonly #rivals: Rivals
  #read = false

  constructor(book: Book, maxBytes: number) {
    this.#book = {
      ...book,
      read: (sheet, wish) => {
        this.#read = true
        return book.read(sheet, wish)
      }
    }
    this.#grids = new Grids(this.#book)
    this.#rivals = new Rivals(book.inventory)
    this.#maxBytes = maxBytes
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
    this.#sheetsComplete = false
  }

  /** The prepared statement once every table that it names is there; undefined where `execute` will say what is wrong. */
  async #prepare(sql: string): Promise<Database.Statement<Array<unknown>, unknown> | undefined> {
    this.#hideRivals()
    const asked = new Set<string>()
    for (;;) {
      try {
        const statement = this.#database.prepare<Array<unknown>, unknown>(sql)
        this.#rivals.refuse(sql, asked)
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
    const hidden = this.#loaded.get(sqliteFold(hiddenName(name)))
    if (hidden !== undefined && hidden.name === hiddenName(name)) {
      this.#rename(hidden, name)
      return
    }
    const { draft, grid } = await this.#grids.readInto(resolution.target, () => this.#store.begin())
    draft.finish(name, grid)
    this.#loaded.set(sqliteFold(name), { name, grid })
  }

  // ---- the tables that describe the file

  /** Fills the tables that the catalog is read by, where a statement reads them. */
  async #describe(sql: string): Promise<void> {
    if (sql.includes(objectsTable)) this.#replace(objectsTable, objectsContent(this.#book))
    if (!sql.includes(columnsTable)) return
    const names = [...tokens(sql)].flatMap(({ kind, text }) => (kind === "string" ? [literalText(text)] : []))
    const grids: Array<readonly [string, Grid]> = []
    for (const name of new Set(names)) {
      const resolution = resolve(this.#book.inventory, name)
      if (resolution.kind !== "target") continue
      // One that is asked for alone is likely to be queried next, and is kept.
      if (names.length === 1 && this.#gridOf(name) === undefined) await this.#provide(name)
      grids.push([name, this.#gridOf(name) ?? (await this.#grids.of(resolution.target))])
    }
    this.#replace(columnsTable, columnsContent(grids))
  }

  /** Of a table in memory, by its name as written. */
  #gridOf(name: string): Grid | undefined {
    const found = this.#loaded.get(sqliteFold(name))
    return found?.name === name ? found.grid : undefined
  }

  #replace(name: string, content: CatalogContent) {
    if (!this.#loaded.has(name)) return this.#fill(name, content)
    this.#database.exec(`DELETE FROM "${name}"`)
    const places = content.columns.map(() => "?").join()
    const insert = this.#database.prepare(`INSERT INTO "${name}" VALUES (${places})`)
    for (const row of content.rows) insert.run(...row)
  }

  #fill(name: string, { columns, rows }: CatalogContent) {
    const table = this.#store.begin()
    table.sink.widen(columns.length)
    for (const [index, row] of rows.entries()) table.sink.row(index + 1, row, row.length)
    const grid = { columns, rowCount: rows.length, headerRow: null, leftOut: 0 }
    table.finish(name, grid)
    this.#loaded.set(sqliteFold(name), { name, grid })
  }

  async #loadCatalog(name: string, table: CatalogTable): Promise<void> {
    const { inventory } = this.#book
    switch (table) {
      case "xl_sheets":
        this.#fill(name, sheetsContent(inventory))
        this.#sheetsComplete = false
        return
      case "xl_tables":
        return this.#fill(name, tablesContent(inventory))
      case "xl_names":
        return this.#fill(name, namesContent(inventory))
      case "xl_formulas":
        return this.#loadFormulas(name)
    }
  }

  async #loadFormulas(name: string): Promise<void> {
    const table = this.#store.begin()
    table.sink.widen(formulaColumns.length)
    let count = 0
    for (const sheet of this.#book.inventory.sheets)
      await readFormulas(this.#book, sheet, (row) => table.sink.row(++count, row, row.length))
    const grid = { columns: formulaColumns, rowCount: count, headerRow: null, leftOut: 0 }
    table.finish(name, grid)
    this.#loaded.set(sqliteFold(name), { name, grid })
  }

  /** The size of a sheet takes reading it, so `xl_sheets` has it only once a statement asks for it. */
  async #completeSheets({ tables }: Reads): Promise<void> {
    const loaded = this.#loaded.get("xl_sheets")
    const columns = loaded === undefined ? undefined : tables.get(loaded.name)
    if (columns === undefined || this.#sheetsComplete || this.#isSheet("xl_sheets")) return
    if (![...columns].some((column) => column >= firstSizeColumn)) return
    const update = this.#database.prepare(setSize)
    for (const [index, sheet] of this.#book.inventory.sheets.entries())
      update.run(...sizeOf(await this.#grids.ofSheet(sheet)), index + 1)
    this.#sheetsComplete = true
  }

  #isSheet(name: string) {
    return this.#book.inventory.sheets.some((sheet) => sqliteFold(sheet.name) === name)
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
      if (!isHidden(loaded.name) && this.#rivals.has(loaded.name))
        this.#rename(loaded, hiddenName(loaded.name))
  }

  #rename(loaded: Loaded, name: string) {
    this.#store.rename(loaded.name, name)
    this.#loaded.delete(sqliteFold(loaded.name))
    this.#loaded.set(sqliteFold(name), { ...loaded, name })
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
      notes: () => notesOf(reads, (name) => this.#loaded.get(sqliteFold(name))?.grid)
    }
  }
}
