/** Names of a workbook that differ only in case: SQLite takes them for one, a workbook does not. */
import { Refused } from "../Sqlite/Execute.js"
import { tokens } from "../Sqlite/Tokens.js"
import type { Inventory } from "./Names.js"

/** SQLite's own folding of names: ASCII only. */
export const sqliteFold = (name: string) => name.replace(/[A-Z]/g, (letter) => letter.toLowerCase())

const hiddenMark = "\u0002"

/** Where a table is put out of reach, under a name that tells spellings apart. */
export const hiddenName = (name: string) => `${hiddenMark}${Buffer.from(name).toString("hex")}`

export const isHidden = (name: string) => name.startsWith(hiddenMark)

export class Rivals {
  /** Spellings that mean different things, by what SQLite takes them for. */
  readonly #spellings: ReadonlyMap<string, ReadonlyArray<string>>

  constructor({ names, sheets, tables }: Inventory) {
    const all = new Map<string, Set<string>>()
    for (const { name } of [...sheets, ...tables, ...names]) {
      const folded = sqliteFold(name)
      all.set(folded, (all.get(folded) ?? new Set()).add(name))
    }
    this.#spellings = new Map(
      [...all].flatMap(([folded, each]) => (each.size > 1 ? [[folded, [...each]]] : []))
    )
  }

  has(name: string): boolean {
    return this.#spellings.has(sqliteFold(name))
  }

  /** Two of them in one statement would both be the one that was found first (`asked`). */
  refuse(sql: string, asked: ReadonlySet<string>): void {
    for (const name of asked) {
      const rivals = this.#spellings.get(sqliteFold(name))
      if (rivals === undefined) continue
      const other = [...tokens(sql)].find(
        ({ kind, text }) => (kind === "word" || kind === "quoted") && text !== name && rivals.includes(text)
      )
      if (other !== undefined)
        throw new Refused({
          stage: "prepare",
          code: "AMBIGUOUS_TABLE",
          message: `The names "${name}" and "${other.text}" differ only in case; one statement can use one of them.`
        })
    }
  }
}
