/**
 * PostgreSQL's values as JSON, from the text that the engine prints under the session settings of an answer
 * (`DateStyle` ISO, `IntervalStyle` iso_8601, `bytea_output` hex, `extra_float_digits` 1). Text loses nothing, for any
 * type; what a type is called and made of comes from the catalog (`Type.ts`).
 */
import type { Cell } from "../../Rows.js"
import {
  mapElements,
  readArray,
  rewriteArray,
  rewriteComposite,
  rewriteMultirange,
  rewriteRange
} from "./Container.js"
import { readJson } from "./ExactJson.js"
import { timestamp, timestamptz, timetz, utcText } from "./Timestamp.js"

/** The scalar types with a rule of their own; all others are their text. */
export type Scalar =
  | "text"
  | "boolean"
  | "integer"
  | "float"
  | "money"
  | "timestamp"
  | "timestamptz"
  | "timetz"
  | "bytea"
  | "json"

/** What a type is made of. */
export type Shape =
  | { readonly _tag: "Scalar"; readonly scalar: Scalar }
  | { readonly _tag: "Array"; readonly element: Shape; readonly delimiter: string }
  | { readonly _tag: "Composite"; readonly fields: ReadonlyArray<Shape> }
  | { readonly _tag: "Range"; readonly bound: Shape }
  | { readonly _tag: "Multirange"; readonly bound: Shape }

/** What a session prints in its own way, without a setting that could be pinned. */
export interface Locale {
  /** Digits after the decimal point of `money`, by the session's `lc_monetary`. */
  readonly moneyDigits: number
}

const integer = (text: string): Cell => {
  const value = Number(text)
  return Number.isSafeInteger(value) ? value : text
}

const float = (text: string): Cell => {
  const value = Number(text)
  return Number.isFinite(value) ? value : text
}

/** `-1.234,50 €` in any locale as `-1234.50`: the digits, the point where the locale has it, and the sign. */
const money = (text: string, { moneyDigits }: Locale): Cell => {
  const digits = text.replace(/[^0-9]/g, "").padStart(moneyDigits + 1, "0")
  const whole = digits.slice(0, digits.length - moneyDigits)
  const sign = /[-−(]/.test(text) ? "-" : ""
  return moneyDigits === 0 ? `${sign}${whole}` : `${sign}${whole}.${digits.slice(-moneyDigits)}`
}

const bytea = (text: string): Cell => Buffer.from(text.slice(2), "hex")

/** The value table. */
export const scalars: Record<Scalar, (text: string, locale: Locale) => Cell> = {
  text: (text) => text,
  boolean: (text) => text === "t",
  integer,
  float,
  money,
  timestamp,
  timestamptz,
  timetz,
  bytea,
  json: readJson
}

/** How to rewrite a type's text so that moments in it are in UTC; null where it holds none. */
const inUtc = (shape: Shape): ((text: string) => string) | null => {
  switch (shape._tag) {
    case "Scalar":
      return shape.scalar === "timestamptz" ? utcText : null
    case "Array": {
      const element = inUtc(shape.element)
      return element === null ? null : (text) => rewriteArray(text, shape.delimiter, element)
    }
    case "Composite": {
      const fields = shape.fields.map(inUtc)
      return fields.every((field) => field === null) ? null : (text) => rewriteComposite(text, fields)
    }
    case "Range": {
      const bound = inUtc(shape.bound)
      return bound === null ? null : (text) => rewriteRange(text, bound)
    }
    case "Multirange": {
      const bound = inUtc(shape.bound)
      return bound === null ? null : (text) => rewriteMultirange(text, bound)
    }
  }
}

/** The conversion of one type's values. */
export const decoder = (shape: Shape, locale: Locale): ((text: string) => Cell) => {
  switch (shape._tag) {
    case "Scalar": {
      const convert = scalars[shape.scalar]
      return (text) => convert(text, locale)
    }
    case "Array": {
      const element = decoder(shape.element, locale)
      // Inside an array base64 is made here: the builder makes it of whole cells only.
      const plain = (text: string): Cell => {
        const cell = element(text)
        return cell instanceof Uint8Array ? Buffer.from(cell).toString("base64") : cell
      }
      return (text) => mapElements(readArray(text, shape.delimiter), plain)
    }
    default:
      return inUtc(shape) ?? ((text) => text)
  }
}
