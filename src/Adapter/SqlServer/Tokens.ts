/**
 * Transact-SQL's lexical rules under QUOTED_IDENTIFIER ON, which every session here has: where words, quoted names,
 * strings, numbers, variables and comments begin and end. It knows no statement, and no driver is loaded for it.
 */

export interface Token {
  /** `doubt`: characters that engines of this dialect read in more than one way; `text` says why. */
  readonly kind: "word" | "quoted" | "string" | "number" | "variable" | "symbol" | "doubt"
  /** A quoted name or a string without its quotes, any other token as written. */
  readonly text: string
  readonly start: number
  readonly end: number
}

const isDigit = (c: string) => c >= "0" && c <= "9"

/** Letters for some engines and not for others, also those that show as nothing: they separate words. */
const isDoubtfulLetter = (c: string) =>
  /[\u00aa\u00b5\u00ba\u115f\u1160\u2000-\u2bff\u3000-\u303f\u3164\uffa0]/.test(c)
const isLetter = (c: string) => c > "\u007f" && /\p{L}/u.test(c) && !isDoubtfulLetter(c)
const isNameStart = (c: string) => /[A-Za-z_#]/.test(c) || isLetter(c)
const isNamePart = (c: string) =>
  /[A-Za-z0-9_@#$]/.test(c) || isLetter(c) || (c > "\u007f" && /\p{Nd}/u.test(c))

/** Beyond these, a character that is no part of a name separates words, so that none can hide behind it. */
const isSpace = (c: string) => c === " " || c === "\t" || c === "\n" || c === "\r"

/** What ends a line for some engines and not for others. */
const doubtfulLineEnd = /[\r\v\f\u0085\u2028\u2029]/

/** The end of a quoted run that starts at `start`; the closing character doubled stands for itself. */
const quotedEnd = (sql: string, start: number, close: string): number => {
  for (let i = start + 1; i < sql.length; i++) {
    if (sql[i] !== close) continue
    if (sql[i + 1] === close) i++
    else return i + 1
  }
  return sql.length
}

/** Whether a letter outside of ASCII stands for one within it, by more than its looks: the Kelvin sign for K. */
const isLetterSign = (c: string) =>
  c >= "\u2000" && isDoubtfulLetter(c) && /^[A-Za-z]/.test(c.normalize("NFKC"))

/** Block comments nest. */
const commentEnd = (sql: string, start: number): number => {
  let depth = 0
  for (let i = start; i < sql.length; i++) {
    const pair = sql.slice(i, i + 2)
    if (pair === "/*") {
      depth++
      i++
    } else if (pair === "*/") {
      depth--
      i++
      if (depth === 0) return i + 1
    }
  }
  return sql.length
}

const runEnd = (sql: string, start: number, part: (c: string) => boolean): number => {
  let end = start
  while (end < sql.length && part(sql[end] ?? "")) end++
  return end
}

/** A number ends where a letter begins: `1DELETE` is two tokens. An exponent may lack its digits (`1e`). */
const numberEnd = (sql: string, start: number): number => {
  if (/^0[xX]/.test(sql.slice(start, start + 2))) return runEnd(sql, start + 2, (c) => /[0-9A-Fa-f]/.test(c))
  let end = runEnd(sql, start, isDigit)
  if (sql[end] === ".") end = runEnd(sql, end + 1, isDigit)
  const exponent = /^[eE](?:[+-]?[0-9]+|(?![A-Za-z_#@$0-9\u0080-\uffff]))/.exec(sql.slice(end, end + 24))
  return exponent === null ? end : runEnd(sql, end + exponent[0].length, isDigit)
}

const unquoted = (sql: string, start: number, end: number, close: string) => {
  const closed = end - 1 > start && sql[end - 1] === close ? end - 1 : end
  return sql.slice(start + 1, closed).replaceAll(close + close, close)
}

/** The tokens of `sql` in order, without white space and comments. What is never closed reaches to the end. */
export function* tokens(sql: string): Generator<Token> {
  let at = 0
  while (at < sql.length) {
    const c = sql[at] ?? ""
    const next = sql[at + 1] ?? ""
    const start = at
    const token = (kind: Token["kind"], text: string): Token => ({ kind, text, start, end: at })
    if (isSpace(c)) {
      at++
    } else if (c === "-" && next === "-") {
      const end = sql.indexOf("\n", at)
      at = end < 0 ? sql.length : end + 1
      const comment = sql.slice(start, at).replace(/\r?\n?$/, "")
      if (doubtfulLineEnd.test(comment))
        yield token("doubt", "a line comment holds a character that may end it")
    } else if (c === "/" && next === "*") {
      at = commentEnd(sql, at)
      // Where the outer one is never closed, an engine may take the inner one's end for its own.
      if (!sql.startsWith("*/", at - 2) && sql.slice(start, at).includes("*/"))
        yield token("doubt", "a comment within a comment ends, and the outer one does not")
    } else if (c === "'") {
      at = quotedEnd(sql, at, "'")
      yield token("string", unquoted(sql, start, at, "'"))
    } else if (c === '"') {
      at = quotedEnd(sql, at, '"')
      yield token("quoted", unquoted(sql, start, at, '"'))
    } else if (c === "[") {
      at = quotedEnd(sql, at, "]")
      yield token("quoted", unquoted(sql, start, at, "]"))
    } else if (c === "@") {
      at = runEnd(sql, at, isNamePart)
      yield token("variable", sql.slice(start, at))
    } else if (isNameStart(c)) {
      at = runEnd(sql, at, isNamePart)
      yield token("word", sql.slice(start, at))
    } else if (isDigit(c) || (c === "." && isDigit(next))) {
      at = numberEnd(sql, at)
      yield token("number", sql.slice(start, at))
    } else if (c === "\u0000") {
      at++
      yield token("doubt", "it holds a NUL character")
    } else if (isLetterSign(c)) {
      at++
      yield token("doubt", "it holds a sign that may stand for a letter")
    } else if (c < " " || /[\p{Z}\u007f-\u009f\ufeff\u200b-\u200f\u2060]/u.test(c)) {
      at++
    } else {
      at++
      yield token("symbol", c)
    }
  }
}
