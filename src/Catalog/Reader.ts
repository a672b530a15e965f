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
  const match = /^\s*CHECK\s*\(([\s\S]*)\)(?:NOT VALID|NO INHERIT|NOT ENFORCED|\s)*$/i.exec(text)
  return stripParentheses(match?.[1] ?? text)
}

/** The index of the parenthesis that closes each one. */
const closings = (text: string): ReadonlyMap<number, number> => {
  const found = new Map<number, number>()
  const open: Array<number> = []
  let quote: string | undefined
  for (let at = 0; at < text.length; at++) {
    const character = text[at]
    if (quote !== undefined) {
      // A doubled quote ends a quotation and begins the next.
      if (character === quote) quote = undefined
    } else if (character === "'" || character === '"') quote = character
    else if (character === "(") open.push(at)
    else if (character === ")") {
      const opened = open.pop()
      if (opened !== undefined) found.set(opened, at)
    }
  }
  return found
}

/** Parentheses that enclose the whole text say nothing. There may be thousands of them. */
export const stripParentheses = (text: string): string => {
  const isBlank = (at: number) => text.charAt(at).trim() === ""
  let closing: ReadonlyMap<number, number> | undefined
  for (let from = 0, to = text.length; ; from++, to--) {
    while (from < to && isBlank(from)) from++
    while (from < to && isBlank(to - 1)) to--
    if (text[from] !== "(" || to - from < 2) return text.slice(from, to)
    closing ??= closings(text)
    if (closing.get(from) !== to - 1) return text.slice(from, to)
  }
}
