/** Reads the cells of a worksheet part, row by row. */
import type { Archive } from "./Archive.js"
import type { FormatKind } from "./NumberFormat.js"
import { damaged } from "./Problem.js"
import { lastColumn, lastRow } from "./Reference.js"
import type { SharedStrings } from "./SharedStrings.js"
import { decodeEscapes, isoText, Kind, momentText, quickNumber, type Stored, storedNumber } from "./Value.js"
import { decodeText, type Tag, type XmlHandler, XmlReader } from "./Xml.js"

/** What a formula element says, for `xl_formulas`. */
export interface FormulaText {
  readonly text: string
  readonly type: string
  /** Groups the cells of a shared formula; only its first one has the text. */
  readonly shared: string | undefined
}

/**
 * The cells of a row that hold something, in the order of the file. One object serves all rows: its arrays are valid
 * during the call only, up to `count`.
 */
export class SheetRow {
  number = 0
  count = 0
  readonly columns: Array<number> = []
  readonly values: Array<Stored> = []
  /** One bit of `Kind` each. */
  readonly kinds: Array<number> = []
  readonly formulas: Array<FormulaText | undefined> = []
}

export interface SheetContext {
  readonly strings: SharedStrings | undefined
  readonly styles: ReadonlyArray<FormatKind>
  readonly date1904: boolean
}

export interface SheetWish {
  /** Columns outside are left out. */
  readonly left: number
  readonly right: number
  /** Rows past this one are not read, but for whether there are any. */
  readonly bottom: number
  /** Whether formulas are wanted too. */
  readonly formulas: boolean
  /** Receives each row that holds something, in the order of the file. */
  readonly row: (row: SheetRow) => void
}

const A_CAPITAL = 0x41
const A_SMALL = 0x61
const ZERO = 0x30

/** Which text is being read. */
enum Capture {
  none,
  value,
  text,
  formula
}

class SheetHandler implements XmlHandler {
  readonly #context: SheetContext
  readonly #wish: SheetWish
  readonly #row = new SheetRow()
  /** The reading may end: a row past the last one wished for holds something. */
  done = false
  rootName = ""

  #inData = false
  #inRow = false
  #inCell = false
  #phonetic = 0
  #capture = Capture.none

  #rowNumber = 0
  /** False while a row has not said its number and no cell has said it either. */
  #rowKnown = false
  #column = 0
  #type = "n"
  #style = 0
  #hasFormula = false
  #hasValue = false
  #inline: string | undefined
  #formulaText = ""
  #formulaType = ""
  #formulaShared: string | undefined

  // The value's text: where it stands in the bytes, or, once it came in several runs, as a string.
  #bytes: Buffer | undefined
  #from = 0
  #to = 0
  #pieces: string | undefined

  constructor(context: SheetContext, wish: SheetWish) {
    this.#context = context
    this.#wish = wish
  }

  open(tag: Tag): void {
    if (this.rootName === "") this.rootName = tag.name
    if (this.done) return
    switch (tag.name) {
      case "c":
        if (this.#inRow) this.#openCell(tag)
        break
      case "v":
        if (this.#inCell) {
          this.#capture = Capture.value
          this.#hasValue = true
        }
        break
      case "row":
        if (this.#inData) this.#openRow(tag)
        break
      case "f":
        if (this.#inCell) this.#openFormula(tag)
        break
      case "is":
        if (this.#inCell) this.#inline = ""
        break
      case "rPh":
        this.#phonetic++
        break
      case "t":
        if (this.#inline !== undefined && this.#phonetic === 0) this.#capture = Capture.text
        break
      case "sheetData":
        this.#inData = true
        break
    }
  }

  close(name: string): void {
    if (this.done) return
    switch (name) {
      case "c":
        if (this.#inCell) this.#closeCell()
        break
      case "v":
      case "t":
      case "f":
        this.#capture = Capture.none
        break
      case "rPh":
        this.#phonetic--
        break
      case "row":
        if (this.#inRow) this.#closeRow()
        break
      case "sheetData":
        this.#inData = false
        break
    }
  }

  text(bytes: Buffer, from: number, to: number): void {
    switch (this.#capture) {
      case Capture.none:
        return
      case Capture.value:
        if (this.#bytes === undefined) {
          this.#bytes = bytes
          this.#from = from
          this.#to = to
        } else this.#pieces = this.#valueText() + decodeText(bytes, from, to)
        return
      default:
        this.data(decodeText(bytes, from, to))
    }
  }

  data(text: string): void {
    switch (this.#capture) {
      case Capture.none:
        return
      case Capture.value:
        this.#pieces = this.#valueText() + text
        this.#bytes ??= Buffer.alloc(0)
        return
      case Capture.text:
        this.#inline = (this.#inline ?? "") + text
        return
      case Capture.formula:
        this.#formulaText += text
    }
  }

  #valueText(): string {
    if (this.#pieces !== undefined) return this.#pieces
    return this.#bytes === undefined ? "" : decodeText(this.#bytes, this.#from, this.#to)
  }

  #openRow(tag: Tag) {
    this.#inRow = true
    this.#rowKnown = tag.find("r")
    this.#rowNumber = this.#rowKnown ? integerAt(tag.bytes, tag.from, tag.to) : this.#rowNumber + 1
    if (!(this.#rowNumber >= 1 && this.#rowNumber <= lastRow))
      throw damaged("it has a row beyond the last one.")
    this.#column = 0
    this.#row.count = 0
  }

  #openCell(tag: Tag) {
    this.#inCell = true
    this.#column = tag.find("r") ? this.#reference(tag) : this.#column + 1
    if (this.#column > lastColumn) throw damaged("it has a cell beyond the last column.")
    this.#type = tag.find("t") ? typeAt(tag) : "n"
    this.#style = tag.find("s") ? integerAt(tag.bytes, tag.from, tag.to) : 0
    this.#hasFormula = false
    this.#hasValue = false
    this.#inline = undefined
    this.#bytes = undefined
    this.#pieces = undefined
  }

  /** The column that a reference such as `AB12` names; its row counts where the row element says none. */
  #reference({ bytes, from, to }: Tag): number {
    let column = 0
    let at = from
    for (; at < to; at++) {
      const byte = bytes[at] ?? 0
      const letter = byte >= A_SMALL ? byte - A_SMALL : byte - A_CAPITAL
      if (letter < 0 || letter > 25) break
      column = column * 26 + letter + 1
      if (column > lastColumn) throw damaged("it has a cell beyond the last column.")
    }
    if (column === 0 || at === to) throw damaged("it has a cell whose reference is none.")
    if (!this.#rowKnown) {
      this.#rowKnown = true
      this.#rowNumber = integerAt(bytes, at, to)
      if (!(this.#rowNumber >= 1 && this.#rowNumber <= lastRow))
        throw damaged("it has a cell whose reference is none.")
    }
    return column
  }

  #openFormula(tag: Tag) {
    this.#hasFormula = true
    if (!this.#wish.formulas) return
    this.#capture = Capture.formula
    this.#formulaText = ""
    this.#formulaType = tag.get("t") ?? "normal"
    this.#formulaShared = tag.get("si")
  }

  #closeCell() {
    this.#inCell = false
    const row = this.#row
    const at = row.count
    if (this.#rowNumber > this.#wish.bottom) {
      this.done = this.#evaluate(row, at)
      return
    }
    if (this.#column < this.#wish.left || this.#column > this.#wish.right) return
    row.columns[at] = this.#column
    row.formulas[at] =
      this.#wish.formulas && this.#hasFormula
        ? { text: this.#formulaText, type: this.#formulaType, shared: this.#formulaShared }
        : undefined
    if (this.#evaluate(row, at)) row.count++
    this.#bytes = undefined
  }

  /** Writes the cell's value and kind; false where the cell holds nothing. */
  #evaluate(row: SheetRow, at: number): boolean {
    const put = (value: Stored, kind: number): true => {
      row.values[at] = value
      row.kinds[at] = kind
      return true
    }
    if (this.#inline !== undefined) return put(decodeEscapes(this.#inline), Kind.text)
    if (this.#bytes === undefined || this.#from === this.#to) return this.#evaluateEmpty(put)
    switch (this.#type) {
      case "n":
        return this.#evaluateNumber(put)
      case "s": {
        const text = this.#context.strings?.get(integerAt(this.#bytes, this.#from, this.#to))
        return text !== undefined && put(text, Kind.text)
      }
      case "b":
        return put(/^\s*(1|true)\s*$/i.test(this.#valueText()) ? 1n : 0n, Kind.boolean)
      case "e":
        return put(null, Kind.error)
      case "d":
        return put(isoText(this.#valueText(), this.#format()), Kind.moment)
      default:
        // str, inlineStr without its element, and what no standard knows: the text as it stands.
        return put(decodeEscapes(this.#valueText()), Kind.text)
    }
  }

  /** No text in the value, or no value at all. */
  #evaluateEmpty(put: (value: Stored, kind: number) => true): boolean {
    if (this.#type === "e") return put(null, Kind.error)
    if (this.#hasFormula)
      return this.#type === "str" && this.#hasValue ? put("", Kind.text) : put(null, Kind.uncached)
    return this.#type === "str" && this.#hasValue && put("", Kind.text)
  }

  #evaluateNumber(put: (value: Stored, kind: number) => true): boolean {
    let value: number | bigint | string =
      this.#pieces === undefined && this.#bytes !== undefined
        ? quickNumber(this.#bytes, this.#from, this.#to)
        : Number.NaN
    if (Number.isNaN(value)) value = storedNumber(this.#valueText())
    if (typeof value === "string") {
      const text = value.trim()
      return text !== "" && put(decodeEscapes(value), Kind.text)
    }
    if (typeof value === "bigint") return put(value, Kind.integer)
    const format = this.#format()
    if (format !== "number") {
      const moment = momentText(value, format, this.#context.date1904)
      if (moment !== undefined) return put(moment, Kind.moment)
    }
    return Number.isSafeInteger(value) ? put(BigInt(value), Kind.integer) : put(value, Kind.real)
  }

  #format(): FormatKind {
    return this.#context.styles[this.#style] ?? "number"
  }

  #closeRow() {
    this.#inRow = false
    this.#row.number = this.#rowNumber
    if (this.#row.count > 0) this.#wish.row(this.#row)
  }
}

/** Most types are one letter. */
const typeAt = ({ bytes, from, to }: Tag): string => {
  if (to - from === 1)
    switch (bytes[from]) {
      case 0x73:
        return "s"
      case 0x6e:
        return "n"
      case 0x62:
        return "b"
    }
  return bytes.toString("latin1", from, to)
}

/** A whole number in plain digits, white space around it allowed; NaN for anything else. */
const integerAt = (bytes: Buffer, from: number, to: number): number => {
  let value = 0
  for (let at = from; at < to; at++) {
    const digit = (bytes[at] ?? 0) - ZERO
    if (digit < 0 || digit > 9 || at - from > 14)
      return Number.parseInt(bytes.toString("latin1", from, to).trim(), 10)
    value = value * 10 + digit
  }
  return from === to ? Number.NaN : value
}

/** Reads a worksheet as far as is wished; true where a row behind holds something. */
export const readSheet = async (
  archive: Archive,
  part: string,
  context: SheetContext,
  wish: SheetWish
): Promise<boolean> => {
  if (!archive.has(part)) throw damaged("the part of a sheet is missing.")
  const handler = new SheetHandler(context, wish)
  const reader = new XmlReader(handler)
  for await (const chunk of archive.read(part)) {
    reader.push(chunk)
    if (handler.done) return true
  }
  reader.end()
  if (handler.rootName !== "worksheet") throw damaged("the part of a sheet holds something else.")
  return false
}
