/**
 * Rows of cells → the rows of a table: finds the header, the columns and their types while the rows come, so that a
 * sheet is read once. It knows no database: a {@link GridSink} takes the rows.
 */
import { columnNames, findHeader, headerDepth, headerText, type Row } from "./Header.js"
import type { Reading } from "./Names.js"
import { lettersOf, type Range } from "./Reference.js"
import { type ColumnType, isoText, Kind, type Stored, typeOfKinds } from "./Value.js"

/** Most columns of an SQLite table. */
export const maxColumns = 2000

/** What is done to a column's texts where all of them allow it. */
export type Conversion = "integer" | "real" | "moment"

export interface GridColumn {
  readonly name: string
  readonly type: ColumnType
  readonly letters: string
  /** Cells with an error value, which are null in the table. */
  readonly errors: number
  /** Formulas without a cached value, null as well. */
  readonly uncached: number
  readonly conversion?: Conversion
}

export interface Grid {
  readonly columns: ReadonlyArray<GridColumn>
  readonly rowCount: number
  /** The sheet row of the header; null where columns are called by letters or by a table's definition. */
  readonly headerRow: number | null
  /** Cells beyond the last column that a table can have. */
  readonly leftOut: number
}

export interface GridSink {
  /** The table has at least this many columns from now on. */
  readonly widen: (columns: number) => void
  /** `cells` is valid during the call only, and as long as the last `widen` said; past `used` they are null. */
  readonly row: (number: number, cells: ReadonlyArray<Stored>, used: number) => void
}

/** A cell stands left of the columns known so far: the rows must be read again from column `left` on. */
export class StartsFurtherLeft {
  readonly left: number
  constructor(left: number) {
    this.left = left
  }
}

const copyOf = (row: Row & { readonly count?: number }): Row => ({
  number: row.number,
  columns: row.columns.slice(0, row.count),
  values: row.values.slice(0, row.count),
  kinds: row.kinds.slice(0, row.count)
})

export class GridBuilder {
  readonly #range: Range
  readonly #fixed: boolean
  readonly #reading: Reading
  readonly #sink: GridSink
  /** The first rows, until the header is decided. */
  #waiting: Array<Row> | undefined
  #headerRow: number | null = null
  #headers: Row | undefined
  #left: number
  /** Columns used so far, from `#left`. */
  #width = 0
  #furthestLeft: number
  #rowCount = 0
  #leftOut = 0
  #lastNumber: number | undefined
  readonly #cells: Array<Stored> = []
  readonly #kinds: Array<number> = []
  readonly #errors: Array<number> = []
  readonly #uncached: Array<number> = []
  readonly #wideIntegers = new Set<number>()
  /** Columns with dates in another form than theirs. */
  readonly #otherForms = new Set<number>()
  readonly #parsed: boolean

  /**
   * `fixed`: all columns of the range are columns of the table. `left`: the first column, where it is known. `parsed`:
   * cells are texts, and their kinds say what they could be.
   */
  constructor(
    range: Range,
    fixed: boolean,
    reading: Reading,
    sink: GridSink,
    left: number | undefined,
    parsed: boolean
  ) {
    this.#parsed = parsed
    this.#range = range
    this.#fixed = fixed
    this.#reading = reading
    this.#sink = sink
    this.#left = fixed ? range.left : (left ?? 0)
    this.#furthestLeft = this.#left
    if (fixed) this.#widen(Math.min(range.right - range.left + 1, maxColumns))
    if (reading.header === "find") this.#waiting = []
    if (reading.header === "first") this.#headerRow = range.top
  }

  /** Takes the next row that holds something; the object may be used again after the call. */
  add(row: Row & { readonly count: number }): void {
    const { bottom, top } = this.#range
    if (row.number < top) this.#lastNumber = row.number
    else if (row.number > bottom) return
    else if (this.#waiting !== undefined) {
      this.#waiting.push(copyOf(row))
      if (this.#waiting.length === headerDepth) this.#decide()
    } else if (this.#reading.header === "first" && row.number === top) this.#headers = copyOf(row)
    else this.#data(row, row.count)
  }

  /** `more`: whether the sheet has further rows behind the range. */
  finish(more: boolean): Grid {
    if (this.#waiting !== undefined) this.#decide()
    if (this.#reading.header === "letters" && more) this.#fill(this.#range.bottom + 1)
    if (this.#furthestLeft < this.#left) throw new StartsFurtherLeft(this.#furthestLeft)
    if (this.#width === 0) {
      // A table has at least one column.
      this.#left = Math.max(1, this.#range.left)
      this.#widen(1)
    }
    return {
      columns: this.#names().map((name, i) => ({
        name,
        ...this.#typeOf(i),
        letters: lettersOf(this.#left + i),
        errors: this.#errors[i] ?? 0,
        uncached: this.#uncached[i] ?? 0
      })),
      rowCount: this.#rowCount,
      headerRow: this.#headerRow,
      leftOut: this.#leftOut
    }
  }

  #typeOf(index: number): { type: ColumnType; conversion?: Conversion } {
    const kinds = this.#kinds[index] ?? 0
    const type = typeOfKinds(kinds, !this.#wideIntegers.has(index))
    if (!this.#parsed || kinds === 0) return { type }
    if (type === "INTEGER") return { type, conversion: "integer" }
    if (type === "REAL") return { type, conversion: "real" }
    return kinds === Kind.moment && this.#otherForms.has(index)
      ? { type: "TEXT", conversion: "moment" }
      : { type: "TEXT" }
  }

  #names(): ReadonlyArray<string> {
    const given = "names" in this.#reading ? this.#reading.names : undefined
    const headers: Array<string | undefined> = new Array(this.#width).fill(undefined)
    if (given !== undefined)
      for (let i = 0; i < this.#width; i++) headers[i] = headerText(given[i] ?? null, Kind.text)
    this.#headers?.columns.forEach((column, at) => {
      const text = headerText(this.#headers?.values[at] ?? null, this.#headers?.kinds[at] ?? 0)
      const index = column - this.#left
      if (index >= 0 && index < this.#width && text !== undefined) headers[index] = text
    })
    return columnNames(headers, this.#left)
  }

  /** Which of the first rows is the header; those above it are no data, those below are. */
  #decide() {
    const rows = this.#waiting ?? []
    this.#waiting = undefined
    const found = findHeader(rows)
    const from = Math.max(0, found)
    const used = rows.slice(from).flatMap(({ columns }) => columns)
    if (used.length > 0 && this.#left === 0) {
      this.#left = used.reduce((least, column) => Math.min(least, column), Number.POSITIVE_INFINITY)
      this.#furthestLeft = this.#left
    }
    if (found >= 0) {
      const header = rows[found]
      this.#headers = header
      this.#headerRow = header?.number ?? null
      const last = header?.columns.reduce((most, column) => Math.max(most, column), 0) ?? 0
      this.#widen(Math.min(last - this.#left + 1, maxColumns))
    }
    for (const row of rows.slice(found + 1)) this.#data(row, row.columns.length)
  }

  #widen(width: number) {
    if (width <= this.#width) return
    while (this.#cells.length < width) this.#cells.push(null)
    this.#width = width
    this.#sink.widen(width)
  }

  #data({ columns, kinds, number, values }: Row, count: number) {
    if (this.#left === 0) {
      this.#left = columns.slice(0, count).reduce((least, column) => Math.min(least, column))
      this.#furthestLeft = this.#left
    }
    const everyRow = this.#reading.header === "letters"
    if (everyRow) this.#fill(number)
    const cells = this.#cells
    let seen = 0
    let used = 0
    for (let at = 0; at < count; at++) {
      const column = columns[at] ?? 0
      if (this.#fixed && (column < this.#range.left || column > this.#range.right)) continue
      const index = column - this.#left
      seen++
      if (index < 0) {
        this.#furthestLeft = Math.min(this.#furthestLeft, column)
        continue
      }
      if (index >= maxColumns) {
        this.#leftOut++
        continue
      }
      if (index >= this.#width) this.#widen(index + 1)
      if (index >= used) used = index + 1
      cells[index] = values[at] ?? null
      this.#observe(index, values[at] ?? null, kinds[at] ?? 0)
    }
    // What stands further left comes with a second reading; until then the rows are only looked at.
    if ((seen > 0 || everyRow) && this.#furthestLeft === this.#left) this.#emit(number, used)
    for (let at = 0; at < count; at++) {
      const index = (columns[at] ?? 0) - this.#left
      if (index >= 0 && index < this.#width) cells[index] = null
    }
  }

  #observe(index: number, value: Stored, kind: number) {
    if (kind === Kind.error) this.#errors[index] = (this.#errors[index] ?? 0) + 1
    else if (kind === Kind.uncached) this.#uncached[index] = (this.#uncached[index] ?? 0) + 1
    else {
      this.#kinds[index] = (this.#kinds[index] ?? 0) | kind
      if (kind === Kind.integer && !Number.isSafeInteger(Number(value))) this.#wideIntegers.add(index)
      if (
        this.#parsed &&
        kind === Kind.moment &&
        typeof value === "string" &&
        isoText(value, "number") !== value
      )
        this.#otherForms.add(index)
    }
  }

  /** Rows of the used area that hold nothing, up to `number`. */
  #fill(number: number) {
    const { bottom, top } = this.#range
    if (this.#lastNumber !== undefined)
      for (let empty = Math.max(this.#lastNumber + 1, top); empty < number && empty <= bottom; empty++)
        this.#emit(empty, 0)
    this.#lastNumber = number
  }

  #emit(number: number, used: number) {
    this.#rowCount++
    this.#sink.row(number, this.#cells, used)
  }
}
