/** SQLite's value table. Plain code: the child process runs it, so that limits act while rows are read. */
import type { Parameter } from "../../Adapter.js"
import type { Cell } from "../../Rows.js"

/** What the driver gives with safe integers on. */
export type Native = null | bigint | number | string | Uint8Array

export const replacementNote =
  "A text holds U+FFFD, the character that stands in place of bytes that are not valid UTF-8."

/** A stored value as a cell. Integers arrive as bigint; reals as numbers, of which infinities have no JSON form. */
export const toCell = (value: Native): Cell => {
  if (typeof value === "bigint") {
    const number = Number(value)
    return Number.isSafeInteger(number) ? number : value.toString()
  }
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value)
  return value
}

const int64 = 2 ** 63

/** A caller's parameter as the driver binds it: whole numbers that fit are INTEGER, other numbers REAL, as literals are. */
export const toBinding = (value: Parameter | Uint8Array): null | bigint | number | string | Uint8Array => {
  if (typeof value === "bigint") return BigInt.asIntN(64, value) === value ? value : Number(value)
  if (typeof value === "boolean") return value ? 1n : 0n
  if (typeof value === "number" && Number.isInteger(value) && value >= -int64 && value < int64)
    return BigInt(value)
  return value
}
