/**
 * SQLite's lexical rules, as far as policy and parameter binding need them: where words, quoted names, strings,
 * comments and parameters begin and end. Plain code: the child process runs it too.
 */

export interface Token {
  readonly kind: "word" | "quoted" | "string" | "number" | "parameter" | "symbol"
  /** A word as written, a quoted name without its quotes, any other token as written. */
  readonly text: string
  readonly start: number
}

const isSpace = (c: string) => c === " " || c === "\t" || c === "\n" || c === "\f" || c === "\r"
const isWordStart = (c: string) => /[A-Za-z_]/.test(c) || c > "\u007f"
const isWordPart = (c: string) => /[A-Za-z0-9_$]/.test(c) || c > "\u007f"

/** The end of a quoted run that starts at `start`, where the closing quote doubled stands for itself. */
const quotedEnd = (sql: string, start: number, close: string, doubles: boolean): number => {
  for (let i = start + 1; i < sql.length; i++) {
    if (sql[i] !== close) continue
    if (doubles && sql[i + 1] === close) i++
    else return i + 1
  }
  return sql.length
}

const wordEnd = (sql: string, start: number): number => {
  let end = start
  while (end < sql.length && isWordPart(sql[end] ?? "")) end++
  return end
}

/** The tokens of `sql` in order; white space and comments (also one that is never closed) are left out. */
export function* tokens(sql: string): Generator<Token> {
  let at = 0
  while (at < sql.length) {
    const c = sql[at] ?? ""
    const next = sql[at + 1] ?? ""
    const start = at
    if (isSpace(c) || c === "\ufeff") {
      at++
    } else if (c === "-" && next === "-") {
      const end = sql.indexOf("\n", at)
      at = end < 0 ? sql.length : end + 1
    } else if (c === "/" && next === "*") {
      const end = sql.indexOf("*/", at + 2)
      at = end < 0 ? sql.length : end + 2
    } else if (c === "'") {
      at = quotedEnd(sql, at, "'", true)
      yield { kind: "string", text: sql.slice(start, at), start }
    } else if (c === '"' || c === "`") {
      at = quotedEnd(sql, at, c, true)
      yield { kind: "quoted", text: sql.slice(start + 1, at - 1).replaceAll(c + c, c), start }
    } else if (c === "[") {
      at = quotedEnd(sql, at, "]", false)
      yield { kind: "quoted", text: sql.slice(start + 1, at - 1), start }
    } else if ((c === "x" || c === "X") && next === "'") {
      at = quotedEnd(sql, at + 1, "'", false)
      yield { kind: "string", text: sql.slice(start, at), start }
    } else if (c === "?") {
      at++
      while (/[0-9]/.test(sql[at] ?? "")) at++
      yield { kind: "parameter", text: sql.slice(start, at), start }
    } else if ((c === ":" || c === "@" || c === "$" || c === "#") && isWordPart(next)) {
      at = wordEnd(sql, at + 1)
      yield { kind: "parameter", text: sql.slice(start, at), start }
    } else if (isWordStart(c)) {
      at = wordEnd(sql, at)
      yield { kind: "word", text: sql.slice(start, at), start }
    } else if (/[0-9]/.test(c) || (c === "." && /[0-9]/.test(next))) {
      at++
      while (/[A-Za-z0-9_.]/.test(sql[at] ?? "")) {
        if (/[eE]/.test(sql[at] ?? "") && /[+-]/.test(sql[at + 1] ?? "")) at++
        at++
      }
      yield { kind: "number", text: sql.slice(start, at), start }
    } else {
      at++
      yield { kind: "symbol", text: c, start }
    }
  }
}

/** The statement without the white space, comments and semicolons in front, so that EXPLAIN can stand there. */
export const withoutBeginning = (sql: string): string => {
  for (const { kind, start, text } of tokens(sql))
    if (kind !== "symbol" || text !== ";") return sql.slice(start)
  return ""
}

/** Which positions the parameters of a statement take. */
export interface Parameters {
  /** The highest position: how many values the statement asks for. */
  readonly count: number
  /** The positions without a number in order: those of the `?`, and of nothing (the 1 where only `?2` is written). */
  readonly anonymous: ReadonlyArray<number>
  /** The distinct N of the `?N`. */
  readonly numbered: ReadonlySet<number>
  /** A parameter with a name, which no positional value can fill. */
  readonly named: string | undefined
}

/** SQLite refuses a statement with a higher one. */
const highestPosition = 32_766

export const parametersOf = (sql: string): Parameters => {
  const numbered = new Set<number>()
  let count = 0
  let named: string | undefined
  for (const { kind, text } of tokens(sql)) {
    if (kind !== "parameter") continue
    if (text === "?") count++
    else if (text.startsWith("?")) {
      const position = Number(text.slice(1))
      numbered.add(position)
      count = Math.max(count, position)
    } else named ??= text
  }
  const positions = Array.from({ length: Math.min(count, highestPosition) }, (_, index) => index + 1)
  return { count, anonymous: positions.filter((position) => !numbered.has(position)), numbered, named }
}
