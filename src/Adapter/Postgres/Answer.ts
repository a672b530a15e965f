/**
 * Takes the rows of one statement as the wire delivers them. Where the types of all columns are known, each row goes
 * into the answer at once; otherwise rows wait, within bounds, until the catalog has been asked.
 */
import type { FieldDef } from "pg"
import { type Cell, RowBuilder, type RowLimits, type RowSet } from "../../Rows.js"
import type { CatalogRow, Types } from "./Type.js"
import { decoder, type Locale } from "./Value.js"
import type { Sink } from "./Wire.js"

type RawRow = ReadonlyArray<string | null>

/** Text that waits for its types: more than an answer can hold, unless its cells are cut. */
const waitingBytes = (limits: RowLimits) => 4 * limits.maxBytes + 1_048_576

export class Answer {
  readonly #types: Types
  readonly #limits: RowLimits
  readonly #locale: Locale
  /** Where the database has no encoding, text may be any bytes. */
  readonly #unchecked: boolean
  #fields: ReadonlyArray<FieldDef> = []
  #builder: RowBuilder | undefined
  #decoders: ReadonlyArray<(text: string) => Cell> = []
  #waiting: Array<RawRow> = []
  #waitingBytes = 0
  #tooMuchWaiting = false

  constructor(types: Types, limits: RowLimits, locale: Locale, unchecked: boolean) {
    this.#types = types
    this.#limits = limits
    this.#locale = locale
    this.#unchecked = unchecked
  }

  readonly sink: Sink = {
    columns: (fields) => {
      this.#fields = fields
      if (this.unknownTypes.length > 0) return
      this.settleTypes()
      this.#begin()
    },
    row: (row) => {
      if (this.#builder !== undefined) return this.#add(this.#builder, row)
      if (this.#waitingBytes > waitingBytes(this.#limits)) {
        this.#tooMuchWaiting = true
        return false
      }
      for (const value of row) this.#waitingBytes += value?.length ?? 4
      this.#waiting.push(row)
      return true
    }
  }

  get #oids(): ReadonlyArray<number> {
    return this.#fields.map(({ dataTypeID }) => dataTypeID)
  }

  /** What the catalog must still be asked. */
  get unknownTypes(): ReadonlyArray<number> {
    return this.#types.missing(this.#oids)
  }

  /** Every type is known now. */
  finish(): RowSet {
    const builder = this.#builder ?? this.#begin()
    for (const row of this.#waiting) if (!this.#add(builder, row)) break
    if (this.#tooMuchWaiting) builder.stop("max_bytes")
    return builder.finish()
  }

  /** What the catalog said when it was asked for `asked`. */
  learnTypes(asked: Iterable<number>, rows: Iterable<CatalogRow>): void {
    this.#types.learn(asked, rows)
  }

  /** To be called once nothing is unknown. */
  settleTypes(): void {
    this.#types.settle(this.#oids)
  }

  #begin(): RowBuilder {
    const types = this.#oids.map((oid) => this.#types.get(oid))
    this.#decoders = types.map((type) =>
      type === undefined ? (text: string) => text : decoder(type.shape, this.#locale)
    )
    this.#builder = new RowBuilder(
      this.#fields.map(({ name }, i) => ({ name, type: types[i]?.name ?? null })),
      this.#limits
    )
    return this.#builder
  }

  #add(builder: RowBuilder, row: RawRow): boolean {
    if (this.#unchecked && row.some((value) => value?.includes("\ufffd"))) {
      builder.note("Some text is not valid UTF-8; what cannot be read is shown as \ufffd.")
    }
    const cells: Array<Cell> = new Array(row.length)
    for (let i = 0; i < row.length; i++) {
      const value = row[i] ?? null
      const decode = this.#decoders[i]
      cells[i] = value === null || decode === undefined ? value : decode(value)
    }
    return builder.add(cells)
  }
}
