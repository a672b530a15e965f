/** Names as people and statements write them: what an argument asks for, and how a name is quoted. Pure. */
import type { ObjectFact, Search } from "../CatalogReader.js"

/** Nothing here can match in two ways: blanks around a bare part are cut off afterwards. */
const part = /\s*(?:"((?:[^"]|"")*)"|\[((?:[^\]]|\]\])*)\]|`((?:[^`]|``)*)`)\s*(\.|$)|([^."[`\]]+)(\.|$)/y

/** The parts of `sales.orders`, `"Sales"."Order Items"` or `[dbo].[Orders]`; the text itself where it is no such name. */
export const partsOf = (text: string): ReadonlyArray<string> => {
  const parts: Array<string> = []
  part.lastIndex = 0
  for (;;) {
    const match = part.exec(text)
    if (match === null) return [text]
    const [, double, bracket, back, endOfQuoted, bare, end = endOfQuoted] = match
    parts.push(
      double?.replaceAll('""', '"') ??
        bracket?.replaceAll("]]", "]") ??
        back?.replaceAll("``", "`") ??
        bare?.trim() ??
        ""
    )
    if (end === "") return parts
  }
}

const isQuoted = (text: string) => /^["[`]/.test(text.trim())

const likeOf = (text: string) => text.replace(/[\\%_[]/g, "\\$&").replaceAll("*", "%")
const literalLike = (text: string) => text.replace(/[\\%_[]/g, "\\$&")

/** The forms in which an exact name may match: as it was given, without blanks around it, and without its quotes. */
const formsOf = (name: string): ReadonlyArray<string> => [
  ...new Set([name, name.trim(), partsOf(name).join(".")])
]

export const isPattern = (name: string) => name.includes("*") && !isQuoted(name)

/** What a `name` argument looks for; blank or absent: everything. */
export const searchOf = (name: string | undefined, limit: number): Search => {
  if (name === undefined || name.trim() === "") return { likes: [], exact: false, limit }
  if (isPattern(name)) return { likes: [likeOf(name.trim())], exact: false, limit }
  return { likes: formsOf(name).map(literalLike), exact: true, limit }
}

/** Of objects found without regard to case, those spelt as asked, where there are some. */
export const spelt = (name: string, objects: ReadonlyArray<ObjectFact>): ReadonlyArray<ObjectFact> => {
  const among = (forms: ReadonlyArray<string>) =>
    objects.filter(({ bare, qualified }) => forms.includes(bare) || forms.includes(qualified))
  const asGiven = among([name])
  const same = asGiven.length > 0 ? asGiven : among(formsOf(name))
  return same.length > 0 ? same : objects
}

const words = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/))

/** SQLite's words that do not stand for themselves as names, and some that confuse a reader. */
const sqliteWords = words(`
  ADD ALL ALTER AND AS AUTOINCREMENT BETWEEN CASE CHECK COLLATE COLUMN COMMIT CONSTRAINT CREATE CROSS CURRENT_DATE
  CURRENT_TIME CURRENT_TIMESTAMP DEFAULT DEFERRABLE DELETE DISTINCT DROP ELSE ESCAPE EXCEPT EXISTS FALSE FILTER FOREIGN FROM
  FULL GROUP HAVING IN INDEX INDEXED INNER INSERT INTERSECT INTO IS ISNULL JOIN LEFT LIMIT NATURAL NOT NOTHING NOTNULL
  NULL ON OR ORDER OUTER OVER PRIMARY REFERENCES RETURNING RIGHT SELECT SET TABLE THEN TO TRANSACTION TRUE UNION UNIQUE UPDATE
  USING VALUES WHEN WHERE WINDOW WITH
`)

const isPlain = (name: string) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name)

const doubleQuoted = (name: string) => `"${name.replaceAll('"', '""')}"`

/** A name as an SQLite statement writes it. */
export const sqliteName = (name: string): string =>
  isPlain(name) && !sqliteWords.has(name.toUpperCase()) ? name : doubleQuoted(name)

/** A name as a statement about a workbook writes it. */
export const workbookName = (name: string): string =>
  isPlain(name) && !sqliteWords.has(name.toUpperCase())
    ? name
    : /[[\]]/.test(name)
      ? doubleQuoted(name)
      : `[${name}]`

/** A name as Transact-SQL writes it; with `@` in front it would be a variable, with `#` a temporary table. */
export const transactName = (name: string, reserved: ReadonlySet<string>): string =>
  /^[A-Za-z_][A-Za-z0-9_@#$]*$/.test(name) && !reserved.has(name.toUpperCase())
    ? name
    : `[${name.replaceAll("]", "]]")}]`
