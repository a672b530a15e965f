/** The catalog of a workbook or a file of delimited text: what a statement can name, and the headers found. */
import type { SqlClient } from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { columnsTable, objectsTable } from "../Adapter/Excel/Describe.js"
import type { Columns, ObjectFact, Reader } from "../CatalogReader.js"
import { partsOf, workbookName } from "./Name.js"
import { groupBy, present, rowsOf } from "./Reader.js"

interface WorkbookFact extends ObjectFact {
  readonly range: string | null
  readonly hidden: boolean
}

const isWorkbookFact = (fact: ObjectFact): fact is WorkbookFact => "range" in fact

const ObjectRow = Schema.Struct({
  kind: Schema.String,
  name: Schema.String,
  range: Schema.NullOr(Schema.String),
  hidden: Schema.Number,
  total: Schema.Number
})

const factOf = (kind: string, name: string, range: string | null, hidden: boolean): WorkbookFact => ({
  id: name,
  name: workbookName(name),
  bare: name,
  qualified: `main.${name}`,
  kind,
  comment: null,
  range,
  hidden
})

const text = (value: string) => `'${value.replaceAll("'", "''")}'`

const matching = (sql: SqlClient, likes: ReadonlyArray<string>) =>
  likes.length === 0 ? sql.literal("1") : sql.or(likes.map((like) => sql`name like ${like} escape '\\'`))

/** Undoes the escapes of a pattern that has no wildcard. */
const nameOfLike = (like: string) => like.replace(/\\(.)/g, "$1")

/** A range of a sheet is no object of the list, and can be asked for all the same. */
const rangeOf = (sql: SqlClient, likes: ReadonlyArray<string>) =>
  Effect.map(
    columnRows(
      sql,
      likes
        .flatMap((like) => [nameOfLike(like), ...partsOf(nameOfLike(like))])
        .filter((name) => /[!$]/.test(name))
    ),
    (rows) => rows.slice(0, 1).map(({ object }) => factOf("range", object, null, false))
  )

const objects: Reader["objects"] = (sql, { exact, likes, limit }) =>
  Effect.gen(function* () {
    const rows = yield* rowsOf(ObjectRow)(sql`
      select kind, name, range, hidden, count(*) over () as total from ${sql.literal(`"${objectsTable}"`)}
      where ${matching(sql, likes)} order by rowid limit ${sql.literal(String(limit))}`)
    const found = rows.map(({ hidden, kind, name, range }) => factOf(kind, name, range, hidden > 0))
    const listed = found.length === 0 && exact ? yield* rangeOf(sql, likes) : found
    return { objects: listed, total: rows[0]?.total ?? listed.length }
  })

const ColumnRow = Schema.Struct({
  object: Schema.String,
  name: Schema.String,
  type: Schema.String,
  letter: Schema.String,
  header_row: Schema.NullOr(Schema.Number),
  rows: Schema.Number
})

const columnRows = (sql: SqlClient, names: ReadonlyArray<string>) =>
  names.length === 0
    ? Effect.succeed([])
    : rowsOf(ColumnRow)(
        sql.unsafe(
          `select object, name, type, letter, header_row, "rows" from "${columnsTable}"
          where object in (${names.map(text).join(", ")}) order by object, position`
        )
      )

const columnsOf = (rows: ReadonlyArray<typeof ColumnRow.Type>, fact: ObjectFact): Columns => {
  const [first] = rows
  const delimited = fact.kind === "table" && isWorkbookFact(fact) && fact.range === null
  return {
    columns: rows.map(({ letter, name, type }) => ({
      name: workbookName(name),
      ...present({ type, letter: delimited || letter === name ? null : letter })
    })),
    ...present({
      rows: first?.rows,
      headerRow: first?.header_row,
      notes:
        first?.header_row === null && fact.kind === "sheet"
          ? ["No header row was found: columns are called by their letters, and every row is data."]
          : null
    })
  }
}

const columns: Reader["columns"] = (sql, facts) =>
  Effect.map(
    columnRows(
      sql,
      facts.map(({ id }) => id)
    ),
    (rows) => {
      const groups = groupBy(rows, ({ object }) => object)
      return new Map(facts.map((fact) => [fact.id, columnsOf(groups.get(fact.id) ?? [], fact)]))
    }
  )

const describe: Reader["describe"] = (_, facts) =>
  Effect.succeed(
    new Map(
      facts
        .filter(isWorkbookFact)
        .map(({ hidden, id, range }) => [id, present({ range, hidden: hidden ? (true as const) : null })])
    )
  )

export const reader: Reader = {
  objects,
  columns,
  describe,
  note:
    "A range is a table, too: [Sheet$A4:D100] with a header in its first row, [Sheet!A1:D20] as raw cells. " +
    "rowid is the row of the sheet. xl_sheets, xl_tables, xl_names and xl_formulas describe the workbook."
}
