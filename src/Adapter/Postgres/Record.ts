/**
 * What anonymous records (`row(…)`, `array_agg` of rows of a subquery) are made of. Their text does not say it, so that
 * a moment inside stays in the session's time zone; their binary form names the type of each field. The records of one
 * column are taken to be alike.
 */
import type { Shape } from "./Value.js"

const record = 2249
const recordArray = 2287

export const isRecord = (oid: number): boolean => oid === record || oid === recordArray

/** Whether a text holds what may be a moment in another zone than UTC. */
export const holdsMoment = (text: string): boolean =>
  /\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?[+-](?!00(?![:\d]))\d\d/.test(text)

const isBlank = (text: string): boolean => /^(?:\s|--[^\n'"$]*(?:\n|$)|\/\*[^*'"$]*\*\/)*$/.test(text)

/** Without the semicolons around it; one before anything with quotes may be part of a string. */
const bare = (sql: string): string => {
  let end = sql.length
  for (
    let at = sql.lastIndexOf(";");
    at > 0 && isBlank(sql.slice(at + 1, end));
    at = sql.lastIndexOf(";", at - 1)
  )
    end = at
  return sql.slice(0, end).replace(/^[\s;]+/, "")
}

/**
 * Asks the engine for the binary form of the first value in a column of a statement. Nothing that could end a string or
 * a comment stands behind the statement, and the line's end there ends a comment that is its last.
 */
export const sample = (sql: string, columns: number, column: number, oid: number): string => {
  const names = Array.from({ length: columns }, (_, i) => `c${i}`).join(", ")
  const wanted = `q.c${column}`
  const [send, some] =
    oid === record
      ? ["record_send", `${wanted} is distinct from null`]
      : ["array_send", `pg_catalog.cardinality(${wanted}) > 0`]
  return `select pg_catalog.${send}(${wanted}) from (\n${bare(sql)}\n) as q(${names}) where ${some} limit 1`
}

/** A type's identifier, or the fields or elements of an anonymous record. */
export type Part =
  | number
  | { readonly _tag: "Record"; readonly fields: ReadonlyArray<Part> }
  | { readonly _tag: "Records"; readonly element: Part }

/** The parts of one value in its binary form. */
export const partOf = (oid: number, bytes: Buffer | null): Part => {
  if (bytes === null || !isRecord(oid)) return oid
  let at = 0
  const integer = () => {
    at += 4
    return bytes.readInt32BE(at - 4)
  }
  const value = (): Buffer | null => {
    const length = integer()
    if (length < 0) return null
    at += length
    return bytes.subarray(at - length, at)
  }
  if (oid === record) {
    const fields: Array<Part> = []
    for (let left = integer(); left > 0; left--) fields.push(partOf(integer(), value()))
    return { _tag: "Record", fields }
  }
  const dimensions = integer()
  at += 8 + 8 * dimensions
  while (at < bytes.length) {
    const element = value()
    if (element !== null) return { _tag: "Records", element: partOf(record, element) }
  }
  return oid
}

/** The types that a part names. */
export const oidsOf = (part: Part): ReadonlyArray<number> =>
  typeof part === "number"
    ? [part]
    : part._tag === "Record"
      ? part.fields.flatMap(oidsOf)
      : oidsOf(part.element)

/** A part as the value table knows it. */
export const shapeOf = (part: Part, shape: (oid: number) => Shape): Shape =>
  typeof part === "number"
    ? shape(part)
    : part._tag === "Record"
      ? { _tag: "Composite", fields: part.fields.map((field) => shapeOf(field, shape)) }
      : { _tag: "Array", element: shapeOf(part.element, shape), delimiter: "," }
