/** The grids of a file's sheets, with their rows or without; those of whole sheets are remembered. */
import type { Book } from "./Book.js"
import { type Grid, GridBuilder, type GridSink, StartsFurtherLeft } from "./Grid.js"
import { everything, resolve, type Target } from "./Names.js"
import { lastColumn } from "./Reference.js"
import type { Sheet } from "./WorkbookPart.js"

const ignoreRows: GridSink = { widen: () => {}, row: () => {} }

const isWholeSheet = ({ range, reading }: Target) => reading.header === "find" && range === everything

/** Draws rows into a table that can be begun again. */
export interface Draft {
  readonly sink: GridSink
  readonly abandon: () => void
}

export class Grids {
  readonly #book: Book
  readonly #wholeSheets = new Map<string, Grid>()

  constructor(book: Book) {
    this.#book = book
  }

  /** Reads the rows of a target into what `begin` gives. */
  async readInto<D extends Draft>(
    target: Target,
    begin: () => D
  ): Promise<{ readonly draft: D; readonly grid: Grid }> {
    let left: number | undefined
    for (;;) {
      const draft = begin()
      try {
        const grid = await this.#read(target, draft.sink, left)
        if (isWholeSheet(target)) this.#wholeSheets.set(target.sheet.name, grid)
        return { draft, grid }
      } catch (error) {
        if (!(error instanceof StartsFurtherLeft)) throw error
        draft.abandon()
        left = error.left
      }
    }
  }

  /** What the table of a target would be, without its rows. */
  async of(target: Target): Promise<Grid> {
    const known = isWholeSheet(target) ? this.#wholeSheets.get(target.sheet.name) : undefined
    if (known !== undefined) return known
    const { grid } = await this.readInto(target, () => ({ sink: ignoreRows, abandon: () => {} }))
    return grid
  }

  async ofSheet(sheet: Sheet): Promise<Grid> {
    const resolution = resolve({ sheets: [sheet], tables: [], names: [] }, sheet.name)
    if (resolution.kind !== "target") throw new Error("A sheet is no table.")
    return this.of(resolution.target)
  }

  async #read(target: Target, sink: GridSink, left: number | undefined): Promise<Grid> {
    const { range, reading, sheet, wholeRange } = target
    const builder = new GridBuilder(range, wholeRange, reading, sink, left, this.#book.textsAreParsed)
    // The used area of raw cells is that of the whole sheet.
    const everyColumn = reading.header === "letters"
    const more = await this.#book.read(sheet, {
      left: everyColumn ? 1 : range.left,
      right: everyColumn ? lastColumn : range.right,
      bottom: range.bottom,
      formulas: false,
      row: (row) => builder.add(row)
    })
    return builder.finish(more)
  }
}
