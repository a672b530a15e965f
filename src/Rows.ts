/**
 * Builds the rows of an answer while an engine delivers them, and says when to stop.
 *
 * It owns column names, the row, byte and cell limits, and base64; it knows no engine. Plain code without imports,
 * because the SQLite child process runs it too.
 */

/** The beginning of a value that is too large to be held whole. */
export class Excerpt {
  constructor(
    /** At least as many bytes as `maxCellBytes` allows. */
    readonly kept: string | Uint8Array,
    /** The whole value's size; of text, in UTF-8. */
    readonly bytes: number
  ) {}
}

/** A value as an adapter's value table leaves it: JSON, or bytes that become base64 text here. */
export type Cell =
  | Excerpt
  | null
  | boolean
  | number
  | string
  | Uint8Array
  | ReadonlyArray<unknown>
  | { readonly [key: string]: unknown }

export interface Column {
  /** As the engine names it; empty where it has no name. */
  readonly name: string
  /** The engine's own type name, or null where it has none. */
  readonly type: string | null
}

export type Format = "records" | "columnar"

/** Limits on what one answer may hold. `maxBytes` counts the rows as compact JSON in `format`. */
export interface RowLimits {
  readonly maxRows: number
  readonly maxBytes: number
  readonly maxCellBytes: number
  readonly format: Format
}

/** Rows within their limits, in columnar form, every cell plain JSON. */
export interface RowSet {
  readonly columns: ReadonlyArray<string>
  readonly columnTypes: ReadonlyArray<string | null>
  readonly rows: ReadonlyArray<ReadonlyArray<unknown>>
  readonly truncatedBy: "max_rows" | "max_bytes" | null
  readonly truncatedCells: ReadonlyArray<{ row: number; column: string; bytes: number }>
  readonly notes: ReadonlyArray<string>
}

/** Finds `base_2`, `base_3`, … that is not `taken`, and takes it. `fold` makes names alike that are taken for one. */
export const freeNames = (taken: Set<string>, fold: (name: string) => string = (name) => name) => {
  // Where the search goes on: from the beginning each time, many equal names would take minutes.
  const next = new Map<string, number>()
  return (base: string): string => {
    let n = next.get(fold(base)) ?? 2
    while (taken.has(fold(`${base}_${n}`))) n++
    next.set(fold(base), n + 1)
    taken.add(fold(`${base}_${n}`))
    return `${base}_${n}`
  }
}

/**
 * Unique names in order: a name that one column alone was given stays with it, a repeated or missing one becomes
 * `name_N` or `column_N` with the next free N.
 */
export const uniqueNames = (names: ReadonlyArray<string>): ReadonlyArray<string> => {
  const taken = new Set(names.filter((name) => name !== ""))
  const seen = new Set<string>()
  const free = freeNames(taken)
  return names.map((name, index) => {
    if (name === "") {
      const position = `column_${index + 1}`
      if (taken.has(position)) return free(position)
      taken.add(position)
      return position
    }
    if (!seen.has(name)) {
      seen.add(name)
      return name
    }
    return free(name)
  })
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what JSON escapes
const escaped = /["\\\u0000-\u001f\ud800-\udfff]/

const stringBytes = (text: string) =>
  escaped.test(text) ? Buffer.byteLength(JSON.stringify(text)) : Buffer.byteLength(text) + 2

const jsonBytes = (value: unknown): number => {
  if (typeof value === "string") return stringBytes(value)
  if (typeof value === "number") return String(value).length
  if (value === null) return 4
  if (typeof value === "boolean") return value ? 4 : 5
  return Buffer.byteLength(JSON.stringify(value))
}

/** The longest run of whole characters of `text` within `limit` bytes of UTF-8. */
export const cutText = (text: string, limit: number): string => {
  // A UTF-16 unit takes at least one byte, so the first `limit` units (and one for a pair) hold the cut.
  const bytes = Buffer.from(text.slice(0, limit + 1), "utf8")
  if (bytes.length <= limit) return text.slice(0, limit + 1)
  let end = limit
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.toString("utf8", 0, end)
}

export class RowBuilder {
  readonly columns: ReadonlyArray<string>
  readonly #types: ReadonlyArray<string | null>
  readonly #limits: RowLimits
  readonly #rows: Array<ReadonlyArray<unknown>> = []
  readonly #cut: Array<{ row: number; column: string; bytes: number }> = []
  /** Of the row that is being taken, which may not fit. */
  readonly #rowCuts: Array<{ row: number; column: string; bytes: number }> = []
  readonly #notes: Array<string> = []
  readonly #rowOverhead: number
  #bytes = 2
  #stoppedBy: "max_rows" | "max_bytes" | null = null

  constructor(columns: ReadonlyArray<Column>, limits: RowLimits) {
    this.columns = uniqueNames(columns.map(({ name }) => name))
    this.#types = columns.map(({ type }) => type)
    this.#limits = limits
    const keys =
      limits.format === "records" ? this.columns.reduce((sum, name) => sum + stringBytes(name) + 1, 0) : 0
    // brackets, commas between cells, and the comma after the row
    this.#rowOverhead = 3 + Math.max(0, columns.length - 1) + keys
  }

  /** How many rows an engine should deliver at most: one more than wanted shows that there are more. */
  get wanted(): number {
    return this.#limits.maxRows + 1
  }

  get rowCount(): number {
    return this.#rows.length
  }

  /** Takes a row; false when it did not fit and no further row is wanted. */
  add(cells: ReadonlyArray<Cell>): boolean {
    if (this.#stoppedBy !== null) return false
    if (this.#rows.length >= this.#limits.maxRows) return this.#stop("max_rows")
    const row: Array<unknown> = new Array(cells.length)
    this.#rowCuts.length = 0
    let bytes = this.#rowOverhead
    for (let i = 0; i < cells.length; i++) {
      const cell = this.#fit(cells[i] ?? null, i)
      bytes += jsonBytes(cell)
      row[i] = cell
    }
    if (this.#bytes + bytes > this.#limits.maxBytes) return this.#stop("max_bytes")
    this.#bytes += bytes
    this.#rows.push(row)
    if (this.#rowCuts.length > 0) this.#cut.push(...this.#rowCuts)
    return true
  }

  note(text: string): void {
    if (!this.#notes.includes(text)) this.#notes.push(text)
  }

  /** The engine had more rows, though it was not asked for them (an adapter that stopped by its own budget). */
  stop(by: "max_rows" | "max_bytes"): void {
    this.#stop(by)
  }

  finish(): RowSet {
    return {
      columns: this.columns,
      columnTypes: this.#types,
      rows: this.#rows,
      truncatedBy: this.#stoppedBy,
      truncatedCells: this.#cut,
      notes: this.#notes
    }
  }

  #stop(by: "max_rows" | "max_bytes"): false {
    this.#stoppedBy ??= by
    return false
  }

  #cutCell(index: number, bytes: number) {
    this.#rowCuts.push({ row: this.#rows.length, column: this.columns[index] ?? "", bytes })
  }

  #fit(cell: Cell, index: number): unknown {
    const limit = this.#limits.maxCellBytes
    if (typeof cell === "string") return this.#fitText(cell, index)
    if (cell === null || typeof cell !== "object") return cell
    if (cell instanceof Uint8Array) return this.#fitBytes(cell, cell.length, index)
    if (cell instanceof Excerpt) {
      if (typeof cell.kept !== "string") return this.#fitBytes(cell.kept, cell.bytes, index)
      if (cell.bytes > limit) this.#cutCell(index, cell.bytes)
      return cutText(cell.kept, limit)
    }
    // A structured value is whole or, past the limit, the beginning of its JSON text.
    const text = JSON.stringify(cell)
    return Buffer.byteLength(text) > limit ? this.#fitText(text, index) : cell
  }

  #fitBytes(bytes: Uint8Array, size: number, index: number): string {
    const limit = this.#limits.maxCellBytes
    if (size > limit) this.#cutCell(index, size)
    const kept = bytes.subarray(0, limit)
    return Buffer.from(kept.buffer, kept.byteOffset, kept.length).toString("base64")
  }

  #fitText(text: string, index: number): string {
    const limit = this.#limits.maxCellBytes
    if (text.length * 3 <= limit) return text
    const bytes = Buffer.byteLength(text)
    if (bytes <= limit) return text
    this.#cutCell(index, bytes)
    return cutText(text, limit)
  }
}
