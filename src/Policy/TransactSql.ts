/**
 * What may be sent to SQL Server: one SELECT, also WITH … SELECT. The dialect has no read-only session, and needs
 * nothing between two statements (`SELECT 1DELETE FROM t`), so that the words of the text must decide: outside of quotes
 * the reserved words that begin another statement have no place in a read.
 */
import * as Effect from "effect/Effect"
import { type Token, tokens } from "../Adapter/SqlServer/Tokens.js"
import type { Verdict } from "../Dialect.js"
import { QueryRejected } from "../QueryError.js"
import {
  deniedFunctions,
  lockHints,
  reserved,
  statementWords,
  tableHints,
  writingWords
} from "./TransactSql/Words.js"

type Rejection = Effect.Effect<never, QueryRejected>

const readHint = "Send one SELECT, also WITH … SELECT; put names that are keywords in [brackets]."

const reject = (reason: QueryRejected["reason"], message: string, hint = readHint): Rejection =>
  Effect.fail(new QueryRejected({ reason, message, hint }))

const secondStatement = (what: string) =>
  reject(
    "multiple_statements",
    `Only one statement may be sent in a call; ${what} begins another.`,
    "Send each statement in a call of its own. A name that is a keyword needs [brackets]."
  )

/** Words after which a statement's next part begins, and what they begin; a JOIN's condition is its own part. */
const clauseOf: ReadonlyMap<string, Clause> = new Map<string, Clause>([
  ["FROM", "tables"],
  ["JOIN", "tables"],
  ["APPLY", "tables"],
  ["ON", "condition"],
  ...["SELECT", "WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "OPTION", "UNION", "EXCEPT", "INTERSECT"].map(
    (word) => [word, "other"] as const
  )
])

type Clause = "tables" | "condition" | "other"

/**
 * A statement's tokens with what the rules ask about each: its word, its neighbours, how deep in parentheses it is, and
 * in which part of its SELECT.
 */
class Statement {
  readonly list: ReadonlyArray<Token>
  readonly #words: ReadonlyArray<string>
  readonly #depths: ReadonlyArray<number>
  readonly #openers: ReadonlyArray<number>
  readonly #openings: ReadonlyMap<number, number>
  readonly #clauses: ReadonlyArray<Clause>

  constructor(list: ReadonlyArray<Token>) {
    this.list = list
    // Compatibility forms (full-width letters) and letters that only capitalise to ASCII count as what they look like.
    this.#words = list.map((token) =>
      token.kind === "word" ? token.text.normalize("NFKC").toUpperCase() : ""
    )
    const depths: Array<number> = []
    const openers: Array<number> = []
    const openings = new Map<number, number>()
    const clauses: Array<Clause> = []
    const groups: Array<{ opener: number; clause: Clause }> = [{ opener: -1, clause: "other" }]
    for (const index of list.keys()) {
      if (this.symbol(index, ")") && groups.length > 1) openings.set(index, groups.pop()?.opener ?? -1)
      const group = groups[groups.length - 1] ?? { opener: -1, clause: "other" }
      depths.push(groups.length - 1)
      openers.push(group.opener)
      clauses.push(group.clause)
      // A group in parentheses is of the part that it stands in until a word of its own says otherwise.
      if (this.symbol(index, "(")) groups.push({ opener: index, clause: group.clause })
      else if (this.symbol(index, ",") && group.clause === "condition") group.clause = "tables"
      else group.clause = clauseOf.get(this.word(index)) ?? group.clause
    }
    this.#depths = depths
    this.#openers = openers
    this.#openings = openings
    this.#clauses = clauses
  }

  /** The unquoted word at `index`, upper case; empty where something else or nothing stands. */
  word(index: number): string {
    return this.#words[index] ?? ""
  }

  /** The readings of a word: in `1eDELETE` the first letter may belong to the number before it. */
  readings(index: number): ReadonlyArray<string> {
    const word = this.word(index)
    const before = this.list[index - 1]
    const glued = before?.kind === "number" && before.end === this.list[index]?.start
    return glued && word.startsWith("E") ? [word, word.slice(1)] : [word]
  }

  symbol(index: number, text: string): boolean {
    const token = this.list[index]
    return token?.kind === "symbol" && token.text === text
  }

  depth(index: number): number {
    return this.#depths[index] ?? 0
  }

  /** The index of the parenthesis that the one at `index` closes; negative where there is none. */
  opening(index: number): number {
    return this.#openings.get(index) ?? -1
  }

  /** The index of the parenthesis around `index`; negative where there is none. */
  opener(index: number): number {
    return this.#openers[index] ?? -1
  }

  /** The part in which `index` stands, before what it may begin itself. */
  clause(index: number): Clause {
    return this.#clauses[index] ?? "other"
  }

  isName(index: number): boolean {
    const kind = this.list[index]?.kind
    return kind === "quoted" || (kind === "word" && !reserved.has(this.word(index)))
  }

  /** The name at `index`, quoted or not, lower case; empty where none stands. */
  name(index: number): string {
    const token = this.list[index]
    return token?.kind === "quoted" || token?.kind === "word" ? token.text.toLowerCase() : ""
  }
}

/** What the statement begins with, when it is not a read. */
const inspectHead = (statement: Statement, head: number): Rejection | undefined => {
  const word = statement.word(head)
  if (word === "SELECT" || word === "WITH") return isAscii(statement, head) ? undefined : lookalike()
  if (statement.symbol(head, "(")) {
    let inner = head
    while (statement.symbol(inner, "(")) inner++
    return statement.word(inner) === "SELECT"
      ? undefined
      : reject("statement_type", "Only a SELECT is run here.")
  }
  if (writingWords.has(word)) return reject("read_only", `This source is read-only; ${word} is not allowed.`)
  return statementWords.has(word)
    ? reject("statement_type", `${word} is not allowed here; only a SELECT is.`)
    : reject(
        "statement_type",
        "Only a SELECT is run here; a statement that begins otherwise may call a procedure."
      )
}

const isAscii = (statement: Statement, index: number) => /^[A-Za-z]+$/.test(statement.list[index]?.text ?? "")

const lookalike = () => reject("unverifiable", "A keyword is written with characters that only look like it.")

/** The index of the statement behind a list of common table expressions; the head itself where there is none. */
const mainIndex = (statement: Statement, head: number): number => {
  if (statement.word(head) !== "WITH") return head
  for (let i = head + 1; i < statement.list.length; i++) {
    if (!statement.symbol(i, ")") || statement.depth(i) !== 0) continue
    if (statement.symbol(i + 1, ",") || statement.word(i + 1) === "AS") continue
    return i + 1
  }
  return statement.list.length
}

const setOperators: ReadonlySet<string> = new Set(["UNION", "EXCEPT", "INTERSECT"])

/** Words behind which a parenthesised SELECT is an operand although they are not reserved. */
const operandWords: ReadonlySet<string> = new Set(["APPLY", "OFFSET", "NEXT", "FIRST", "ZONE"])

/** Whether what stands at `index` ends `TOP n`, `TOP (n)`, and `WITH TIES` after it: a column's expression follows. */
const endsTop = (statement: Statement, index: number): boolean => {
  let at = index
  if (statement.word(at) === "TIES" && statement.word(at - 1) === "WITH") at -= 2
  if (statement.word(at) === "PERCENT") at--
  if (statement.symbol(at, ")")) at = statement.opening(at)
  else if (!["number", "variable"].includes(statement.list[at]?.kind ?? "")) return false
  return statement.word(at - 1) === "TOP"
}

/** Whether a SELECT here belongs to the statement that is being read. */
const selectBelongs = (statement: Statement, index: number, main: number): boolean => {
  if (index === main) return true
  const before = index - 1
  if (setOperators.has(statement.word(before))) return true
  if (statement.word(before) === "ALL") return setOperators.has(statement.word(before - 1))
  if (!statement.symbol(before, "(")) return false
  if (before === main || statement.symbol(before - 1, "(")) return true
  // `SELECT 1 (SELECT 2)` are two statements: only an operator, a comma or a keyword takes an operand.
  const operator = statement.list[before - 1]
  if (operator === undefined || endsTop(statement, before - 1)) return true
  if (operator.kind === "symbol") return !statement.symbol(before - 1, ")")
  const word = statement.word(before - 1)
  return operator.kind === "word" && (reserved.has(word) || operandWords.has(word))
}

/** Statement words that a read may hold, each in the one place where it does. */
const wordBelongs = (statement: Statement, index: number, word: string, openCases: number): boolean => {
  const next = statement.word(index + 1)
  switch (word) {
    case "ELSE":
    case "END":
      return openCases > 0
    case "MERGE": // a join or union hint
      return next === "JOIN" || next === "UNION"
    case "USE": // OPTION (USE HINT (…)), OPTION (USE PLAN N'…')
      return statement.depth(index) > 0 && (next === "HINT" || next === "PLAN")
    case "FETCH": // … OFFSET n ROWS FETCH NEXT n ROWS ONLY; a cursor's FETCH NEXT is followed by FROM
      return (
        (next === "NEXT" || next === "FIRST") &&
        (["number", "variable"].includes(statement.list[index + 2]?.kind ?? "") ||
          statement.symbol(index + 2, "(") ||
          (statement.word(index + 2) !== "" && statement.symbol(index + 3, "(")))
      )
    default:
      return false
  }
}

/** Statements of Service Broker, and of the engine's cloud sibling, that begin with words that are no reserved ones. */
const beginsUnreserved = (statement: Statement, index: number): boolean => {
  if (statement.symbol(index - 1, ".")) return false
  const next = statement.word(index + 1)
  switch (statement.word(index)) {
    case "RECEIVE":
      return (
        next === "TOP" ||
        statement.isName(index + 1) ||
        (statement.symbol(index + 1, "*") && statement.word(index + 2) === "FROM")
      )
    case "SEND":
      return next === "ON" && statement.word(index + 2) === "CONVERSATION"
    case "GET":
    case "MOVE":
      return next === "CONVERSATION"
    case "RENAME":
      return next === "OBJECT" || next === "DATABASE"
    default:
      return false
  }
}

const inspectWord = (
  statement: Statement,
  index: number,
  main: number,
  openCases: number
): Rejection | undefined => {
  for (const word of statement.readings(index)) {
    if (word === "SELECT" && !selectBelongs(statement, index, main)) return secondStatement("SELECT")
    if (word === "INTO") return reject("read_only", "This source is read-only; SELECT … INTO makes a table.")
    if (word === "NEXT" && statement.word(index + 1) === "VALUE" && statement.word(index + 2) === "FOR")
      return reject("function_denied", "NEXT VALUE FOR is not allowed here: it moves a sequence.")
    if (word === "BROWSE" && statement.word(index - 1) === "FOR")
      return reject("statement_type", "FOR BROWSE is not allowed here.", "Leave it out.")
    if (word === "VALUES" && statement.depth(index) === 0) return secondStatement("VALUES")
    if (deniedFunctions.keywords.has(word))
      return reject("function_denied", `${word} is not allowed here: it reaches beyond this database.`)
    if (!(statementWords.has(word) || writingWords.has(word))) continue
    if (wordBelongs(statement, index, word, openCases)) continue
    if (index === main && writingWords.has(word))
      return reject("read_only", `This source is read-only; WITH … ${word} is not allowed.`)
    return secondStatement(word)
  }
  return beginsUnreserved(statement, index) ? secondStatement(statement.word(index)) : undefined
}

/**
 * A table hint stands in parentheses behind WITH, behind a table's name, or in `OPTION (TABLE HINT (…))`; HOLDLOCK is
 * reserved and stands anywhere. A column may be called like one.
 */
const isHint = (statement: Statement, index: number, word: string): boolean => {
  if (word === "HOLDLOCK" && statement.word(index) === word) return true
  const opener = statement.opener(index)
  if (opener < 0 || statement.symbol(index - 1, ".") || statement.symbol(index + 1, ".")) return false
  const before = statement.word(opener - 1)
  if (before === "WITH" || before === "HINT") {
    const next = statement.name(index + 1).toUpperCase()
    // `OPENJSON(…) WITH ([xlock] int)` names a column.
    return statement.list[index]?.kind === "word" || next === "" || tableHints.has(next)
  }
  const behindTable = statement.clause(opener) === "tables" && statement.list[opener - 1]?.kind !== "symbol"
  // A SELECT of its own has columns.
  return behindTable && statement.clause(index) === "tables"
}

const inspectHint = (statement: Statement, index: number): Rejection | undefined => {
  const token = statement.list[index]
  const word = token?.kind === "quoted" ? token.text.toUpperCase() : statement.word(index)
  return lockHints.has(word) && isHint(statement, index, word)
    ? reject(
        "read_only",
        `The hint ${word} is not allowed here: it takes locks that others wait for.`,
        "Leave the hint out."
      )
    : undefined
}

/** `name (column, …) AS (`: a common table expression gives its columns, and calls nothing. */
const definesColumns = (statement: Statement, index: number): boolean => {
  let at = index
  do {
    if (statement.name(at + 2) === "") return false
    at += 2
  } while (statement.symbol(at + 1, ","))
  return statement.symbol(at + 1, ")") && statement.word(at + 2) === "AS" && statement.symbol(at + 3, "(")
}

/**
 * A name followed by `(`, with what stands before its dots. The engine beneath Babelfish also calls a function of one
 * argument where it is written as that one's column: `x.pg_sleep`.
 */
const inspectCall = (statement: Statement, index: number): Rejection | undefined => {
  const name = statement.name(index)
  if (name === "") return undefined
  const called = statement.symbol(index + 1, "(") && !definesColumns(statement, index)
  const behindDot = statement.symbol(index - 1, ".")
  const denied = called
    ? deniedFunctions.isDenied(name, behindDot ? statement.name(index - 2) : "")
    : behindDot && deniedFunctions.isDeniedColumn(name)
  return denied
    ? reject("function_denied", `The function ${name}() is not allowed here: it does more than read tables.`)
    : undefined
}

/** `server.database.schema.object`, parts may be empty. Behind a column, a method of its type may be called. */
const inspectName = (statement: Statement, index: number): Rejection | undefined => {
  const isPart = (i: number) => statement.list[i]?.kind === "word" || statement.list[i]?.kind === "quoted"
  if (!isPart(index) || statement.symbol(index - 1, ".")) return undefined
  let dots = 0
  let end = index + 1
  while (statement.symbol(end, ".") || (isPart(end) && statement.symbol(end - 1, "."))) {
    if (statement.symbol(end, ".")) dots++
    end++
  }
  if (dots < 3) return undefined
  if (dots <= 4 && statement.symbol(end, "(") && !tableHints.has(statement.word(end + 1))) return undefined
  // `database.schema.table.column`, where no table may stand
  if (dots === 3 && statement.clause(index) !== "tables") return undefined
  return reject(
    "unverifiable",
    "A name of four or more parts is not allowed here: it may reach another server.",
    "Name a table by at most database.schema.table, and its columns by an alias."
  )
}

/** `::` calls a type's method, `key: value` stands in parentheses; any other colon is a label. */
const isLabel = (statement: Statement, index: number) =>
  statement.symbol(index, ":") &&
  statement.depth(index) === 0 &&
  !statement.symbol(index - 1, ":") &&
  !statement.symbol(index + 1, ":")

const inspectSymbol = (statement: Statement, index: number): Rejection | undefined => {
  if (isLabel(statement, index)) return reject("unverifiable", "A label is not allowed here.")
  // Braces are the drivers' escapes; some of them call procedures.
  if (
    statement.symbol(index, "{") &&
    !["D", "T", "TS", "FN", "OJ", "GUID", "ESCAPE"].includes(statement.word(index + 1))
  )
    return reject("unverifiable", "This escape in braces is not allowed here.")
  return undefined
}

export const inspect = (sql: string): Verdict => {
  const all = [...tokens(sql)]
  const doubt = all.find(({ kind }) => kind === "doubt")
  if (doubt !== undefined)
    return reject("unverifiable", `The statement can be read in more than one way: ${doubt.text}.`)
  const statement = new Statement(all)
  let head = 0
  while (statement.symbol(head, ";")) head++
  if (head >= all.length) return reject("statement_type", "The text holds no statement.")
  const refused = inspectHead(statement, head)
  if (refused !== undefined) return refused

  const main = mainIndex(statement, head)
  // Semicolons at the end belong to the statement.
  let end = all.length
  while (statement.symbol(end - 1, ";")) end--
  let openCases = 0
  for (let i = head; i < end; i++) {
    if (statement.symbol(i, ";")) return secondStatement("what follows the semicolon")
    if (i === main && i > head && !statement.symbol(i, "(") && statement.word(i) !== "SELECT")
      return (
        inspectWord(statement, i, main, 0) ??
        reject("statement_type", "WITH must be followed by a SELECT here.")
      )
    const broken =
      inspectWord(statement, i, main, openCases) ??
      inspectHint(statement, i) ??
      inspectCall(statement, i) ??
      inspectName(statement, i) ??
      inspectSymbol(statement, i)
    if (broken !== undefined) return broken
    if (statement.word(i) === "CASE") openCases++
    if (statement.word(i) === "END") openCases--
  }
  return Effect.succeed("execute")
}
