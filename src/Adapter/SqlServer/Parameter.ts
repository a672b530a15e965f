/** How a positional value is sent: typed so that none of it is lost. */
import { type Request, TYPES } from "tedious"

type DataType = (typeof TYPES)["Int"]

/** A value with the type that it is declared with. */
export interface TypedValue {
  readonly type: DataType
  readonly value: unknown
  readonly length?: number
}

const int32 = 2 ** 31
/** In UTF-16 units; longer text is nvarchar(max). One length for all of it keeps one plan for a statement. */
const longestText = 4000
const longestBytes = 8000

const text = (value: string | null): TypedValue =>
  value !== null && value.length > longestText
    ? { type: TYPES.NVarChar, value }
    : { type: TYPES.NVarChar, value, length: longestText }

const number = (value: number): TypedValue => {
  if (!Number.isSafeInteger(value)) return { type: TYPES.Float, value }
  return value >= -int32 && value < int32 ? { type: TYPES.Int, value } : { type: TYPES.BigInt, value }
}

/** Beyond bigint the engine's literals are decimal; the driver cannot send one of so many digits, but as text it can. */
const integer = (value: bigint): TypedValue => {
  if (BigInt.asIntN(64, value) === value) return { type: TYPES.BigInt, value }
  return BigInt(Number(value)) === value ? { type: TYPES.Float, value: Number(value) } : text(String(value))
}

/**
 * Text is nvarchar, a whole number int or bigint, any other number float, a boolean bit. A decimal or a number beyond
 * 2^53 comes as text, which the engine converts exactly. Programs may also give bigint, Date and bytes.
 */
export const typed = (value: unknown): TypedValue => {
  switch (typeof value) {
    case "string":
      return text(value)
    case "number":
      return number(value)
    case "boolean":
      return { type: TYPES.Bit, value }
    case "bigint":
      return integer(value)
    default:
      if (value === null || value === undefined) return text(null)
      if (value instanceof Date) return { type: TYPES.DateTimeOffset, value }
      if (ArrayBuffer.isView(value)) {
        const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
        return bytes.length > longestBytes
          ? { type: TYPES.VarBinary, value: bytes }
          : { type: TYPES.VarBinary, value: bytes, length: longestBytes }
      }
      return text(JSON.stringify(value))
  }
}

export const addParameters = (
  request: Request,
  values: ReadonlyArray<unknown>,
  nameOf: (position: number) => string
): void => {
  for (const [index, value] of values.entries()) {
    const { length, type, value: sent } = typed(value)
    request.addParameter(nameOf(index + 1), type, sent, length === undefined ? {} : { length })
  }
}
