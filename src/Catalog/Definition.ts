/** Facts that SQLite keeps only in the text of its definitions: checks, computed columns, keys of an index. Pure. */
import { type Token, tokens } from "../Adapter/Sqlite/Tokens.js"
import { stripParentheses } from "./Reader.js"

const isSymbol = (token: Token | undefined, text: string) => token?.kind === "symbol" && token.text === text
const isWord = (token: Token | undefined, ...words: ReadonlyArray<string>) =>
  token?.kind === "word" && words.includes(token.text.toLowerCase())

/** The index of the parenthesis that closes the one at `open`. */
const closing = (list: ReadonlyArray<Token>, open: number): number => {
  let depth = 0
  for (let at = open; at < list.length; at++) {
    if (isSymbol(list[at], "(")) depth++
    else if (isSymbol(list[at], ")") && --depth === 0) return at
  }
  return list.length
}

/** What stands between two tokens. */
const between = (sql: string, list: ReadonlyArray<Token>, open: number, close: number) =>
  sql.slice((list[open]?.start ?? 0) + 1, list[close]?.start ?? sql.length).trim()

interface Part {
  readonly from: number
  readonly to: number
}

/** The parts between commas inside the first parentheses. */
const partsOf = (list: ReadonlyArray<Token>, from = 0): ReadonlyArray<Part> => {
  const open = list.findIndex((token, index) => index >= from && isSymbol(token, "("))
  if (open < 0) return []
  const close = closing(list, open)
  const parts: Array<Part> = []
  let start = open + 1
  for (let at = open + 1; at < close; at++) {
    if (isSymbol(list[at], "(")) at = closing(list, at)
    else if (isSymbol(list[at], ",")) {
      parts.push({ from: start, to: at })
      start = at + 1
    }
  }
  return [...parts, { from: start, to: close }]
}

export interface TableText {
  readonly checks: ReadonlyArray<string>
  /** By the column's name, lower case. */
  readonly generated: ReadonlyMap<string, string>
}

export const readTable = (sql: string): TableText => {
  const list = [...tokens(sql)]
  const checks: Array<string> = []
  const generated = new Map<string, string>()
  for (const { from, to } of partsOf(list)) {
    for (let at = from; at < to; at++) {
      if (isSymbol(list[at], "(")) {
        at = closing(list, at)
        continue
      }
      if (!isSymbol(list[at + 1], "(")) continue
      const text = stripParentheses(between(sql, list, at + 1, closing(list, at + 1)))
      if (isWord(list[at], "check")) checks.push(text)
      else if (isWord(list[at], "as")) generated.set((list[from]?.text ?? "").toLowerCase(), text)
    }
  }
  return { checks, generated }
}

export interface IndexText {
  readonly keys: ReadonlyArray<string>
  readonly where: string | null
}

export const readIndex = (sql: string): IndexText => {
  const list = [...tokens(sql)]
  const on = list.findIndex((token) => isWord(token, "on"))
  const parts = partsOf(list, on)
  const close = parts.at(-1)?.to ?? list.length
  const where = list.findIndex((token, index) => index > close && isWord(token, "where"))
  return {
    keys: parts.map(({ from, to }) => sql.slice(list[from]?.start ?? 0, list[to]?.start).trim()),
    where: where < 0 ? null : sql.slice((list[where]?.start ?? 0) + "where".length).trim()
  }
}
