/** What the readers of our engines' catalogs have in common. Pure, but for `rowsOf`. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/** The rows of a statement, decoded. */
export const rowsOf =
  <A, I>(row: Schema.Schema<A, I>) =>
  <E>(statement: Effect.Effect<ReadonlyArray<unknown>, E>) =>
    Effect.flatMap(statement, Schema.decodeUnknown(Schema.Array(row)))

type Present<T> = { [K in keyof T]?: NonNullable<T[K]> }

const isEmpty = (value: unknown) =>
  value === null || value === undefined || value === "" || (Array.isArray(value) && value.length === 0)

/** The fields that say something. */
export const present = <T extends object>(fields: T): Present<T> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => !isEmpty(value))) as Present<T>

export const groupBy = <A>(all: Iterable<A>, key: (each: A) => string): Map<string, Array<A>> => {
  const groups = new Map<string, Array<A>>()
  for (const each of all) {
    const group = groups.get(key(each))
    if (group === undefined) groups.set(key(each), [each])
    else group.push(each)
  }
  return groups
}

/** Long texts of the catalog are cut here: a model needs to recognise them, not to run them. */
export const clip = (text: string | null, most: number): string | null =>
  text === null || text.length <= most ? text : `${text.slice(0, most)}…`

/** Lengths at which texts are cut. */
export const longest = { comment: 300, default: 200, expression: 500, definition: 4000 } as const

/** The condition inside `CHECK (…)`. */
export const conditionOf = (text: string): string => {
  const match = /^\s*CHECK\s*\(([\s\S]*)\)\s*(?:NOT VALID|NO INHERIT|NOT ENFORCED|\s)*$/i.exec(text)
  return stripParentheses(match?.[1] ?? text)
}

/** Parentheses that enclose the whole text say nothing. */
export const stripParentheses = (text: string): string => {
  const trimmed = text.trim()
  if (!trimmed.startsWith("(") || !trimmed.endsWith(")")) return trimmed
  let depth = 0
  let quote: string | undefined
  const characters = [...trimmed]
  for (const [at, character] of characters.entries()) {
    if (quote !== undefined) {
      // A doubled quote ends a quotation and begins the next.
      if (character === quote) quote = undefined
    } else if (character === "'" || character === '"') quote = character
    else if (character === "(") depth++
    else if (character === ")" && --depth === 0 && at < characters.length - 1) return trimmed
  }
  return stripParentheses(trimmed.slice(1, -1))
}
