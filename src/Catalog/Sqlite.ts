/** The catalog of an SQLite file, from its own table functions and the text of its definitions. */
import type { SqlClient } from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import type { Column, Columns, Description, ObjectFact, Read, Reader } from "../CatalogReader.js"
import { QueryFailed } from "../QueryError.js"
import { readIndex, readTable } from "./Definition.js"
import { sqliteName } from "./Name.js"
import { clip, groupBy, longest, present, rowsOf } from "./Reader.js"

const kinds: Readonly<Record<string, string>> = { table: "table", view: "view", virtual: "virtual_table" }

const ObjectRow = Schema.Struct({
  name: Schema.String,
  type: Schema.String,
  wr: Schema.Number,
  analyzed: Schema.Number,
  total: Schema.Number
})

interface SqliteFact extends ObjectFact {
  readonly rowid: boolean
  /** Whether ANALYZE has left its figures. */
  readonly analyzed: boolean
}

const isSqliteFact = (fact: ObjectFact): fact is SqliteFact => "rowid" in fact

const matching = (sql: SqlClient, likes: ReadonlyArray<string>) =>
  likes.length === 0
    ? sql.literal("1")
    : sql.or(
        likes.flatMap((like) => [
          sql`l.name like ${like} escape '\\'`,
          sql`'main.' || l.name like ${like} escape '\\'`
        ])
      )

const objects: Reader["objects"] = (sql, { likes, limit }) =>
  Effect.map(
    rowsOf(ObjectRow)(sql`
      select l.name, l.type, l.wr, count(*) over () as total,
        exists (select 1 from sqlite_schema where name = 'sqlite_stat1') as analyzed
      from pragma_table_list l
      where l.schema = 'main' and l.type <> 'shadow' and l.name not like 'sqlite\\_%' escape '\\'
        and ${matching(sql, likes)}
      order by l.name collate nocase limit ${sql.literal(String(limit))}`),
    (rows) => ({
      total: rows[0]?.total ?? 0,
      objects: rows.map(
        ({ analyzed, name, type, wr }): SqliteFact => ({
          id: name,
          name: sqliteName(name),
          bare: name,
          qualified: `main.${name}`,
          kind: kinds[type] ?? type,
          comment: null,
          rowid: type === "table" && wr === 0,
          analyzed: analyzed > 0
        })
      )
    })
  )

const ColumnRow = Schema.Struct({
  object: Schema.String,
  name: Schema.String,
  type: Schema.String,
  notnull: Schema.Number,
  dflt_value: Schema.NullOr(Schema.String),
  pk: Schema.Number,
  hidden: Schema.Number,
  definition: Schema.NullOr(Schema.String)
})

const idsOf = (facts: ReadonlyArray<ObjectFact>) => JSON.stringify(facts.map(({ id }) => id))

const columnRows = (sql: SqlClient, facts: ReadonlyArray<ObjectFact>) =>
  rowsOf(ColumnRow)(sql`
    select j.value as object, x.name, x.type, x."notnull", x.dflt_value, x.pk, x.hidden,
      case when x.hidden > 1 then (select s.sql from sqlite_schema s where s.name = j.value and s.type = 'table') end
        as definition
    from json_each(${idsOf(facts)}) j, pragma_table_xinfo(j.value, 'main') x
    where x.hidden <> 1 order by j.key, x.cid`)

const generatedOf = (name: string, definition: string | null): string | null =>
  definition === null ? null : (readTable(definition).generated.get(name.toLowerCase()) ?? null)

/** A single INTEGER PRIMARY KEY is the rowid: never null, and given by the engine. */
const isRowid = ({ pk, type }: typeof ColumnRow.Type, keys: number) =>
  keys === 1 && pk > 0 && type.toLowerCase() === "integer"

const columnsOf = (rows: ReadonlyArray<typeof ColumnRow.Type>): Columns => {
  const keys = rows.filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk)
  return {
    columns: rows.map(
      (row): Column => ({
        name: sqliteName(row.name),
        ...present({
          type: row.type,
          nullable: row.notnull > 0 || isRowid(row, keys.length) ? (false as const) : null,
          default: clip(row.dflt_value, longest.default),
          generated: clip(generatedOf(row.name, row.definition), longest.expression)
        })
      })
    ),
    ...present({ primaryKey: keys.map(({ name }) => sqliteName(name)) })
  }
}

const unreadable = (why: string): Columns => ({ columns: [], notes: [`Its columns cannot be read: ${why}`] })

/** One view on a table that is gone, or a virtual table whose module is not here, fails the whole statement. */
const columns: Reader["columns"] = (sql, facts) =>
  Effect.gen(function* () {
    const read = (some: ReadonlyArray<ObjectFact>) =>
      Effect.map(columnRows(sql, some), (rows) => groupBy(rows, ({ object }) => object))
    const found = yield* Effect.either(read(facts))
    if (Either.isRight(found)) return new Map([...found.right].map(([id, rows]) => [id, columnsOf(rows)]))
    const error = found.left
    const others = facts.filter(({ kind }) => kind !== "table")
    if (!isAboutStatement(error) || others.length === 0) return yield* Effect.fail(error)
    const stored = yield* read(facts.filter(({ kind }) => kind === "table"))
    const why = facts.length === 1 ? error.message : "one of the views cannot; ask for each by its name."
    return new Map([
      ...[...stored].map(([id, rows]) => [id, columnsOf(rows)] as const),
      ...others.map(({ id }) => [id, unreadable(why)] as const)
    ])
  })

const isAboutStatement = (error: Effect.Effect.Error<Read<unknown>>) =>
  error._tag === "SqlError" && error.cause instanceof QueryFailed

const FactRow = Schema.Union(
  Schema.Struct({ fact: Schema.Literal("sql"), object: Schema.String, a: Schema.String }),
  Schema.Struct({
    fact: Schema.Literal("foreign"),
    object: Schema.String,
    /** The key's number, the parent, the own column, the parent's column. */
    n: Schema.Number,
    a: Schema.String,
    b: Schema.String,
    c: Schema.NullOr(Schema.String)
  }),
  Schema.Struct({
    fact: Schema.Literal("index"),
    object: Schema.String,
    /** Whether it is unique, its name, its origin, its definition. */
    n: Schema.Number,
    a: Schema.String,
    b: Schema.String,
    c: Schema.NullOr(Schema.String),
    /** The names of its columns as a JSON array; null for an expression. */
    d: Schema.parseJson(Schema.Array(Schema.NullOr(Schema.String)))
  }),
  Schema.Struct({
    fact: Schema.Literal("child"),
    object: Schema.String,
    n: Schema.Number,
    a: Schema.String,
    b: Schema.String
  }),
  /** The rows by ANALYZE: the first number of its text. */
  Schema.Struct({ fact: Schema.Literal("stat"), object: Schema.String, a: Schema.String }),
  /** Counted up to a bound; and the span of rowids, with the file's size to judge it by. */
  Schema.Struct({
    fact: Schema.Literal("count"),
    object: Schema.String,
    n: Schema.Number,
    b: Schema.NullOr(Schema.Number),
    c: Schema.Number
  })
)
type FactRow = typeof FactRow.Type

/** Rows up to this many are counted; beyond, they are estimated. */
const countUpTo = 10_000

/** A row takes at least so many bytes of the file. */
const leastRowBytes = 4

const text = (value: string) => `'${value.replaceAll("'", "''")}'`
const identifier = (name: string) => `"${name.replaceAll('"', '""')}"`

/** A count of each stored table, bounded, so that the largest costs a millisecond. */
const counts = (facts: ReadonlyArray<ObjectFact>): string => {
  const stored = facts.filter(isSqliteFact).filter(({ kind }) => kind === "table")
  const ofOne = ({ bare, rowid }: SqliteFact) => {
    const table = `main.${identifier(bare)}`
    const count = `(select count(*) from (select 1 from ${table} limit ${countUpTo + 1}))`
    const span = rowid
      ? `(select max(_rowid_) from ${table}) - (select min(_rowid_) from ${table}) + 1`
      : "null"
    return `(${text(bare)}, ${count}, ${span})`
  }
  return stored.length === 0
    ? ""
    : `union all select 'count', column1, column2, null, column3, page_count * page_size, null
       from (values ${stored.map(ofOne).join(", ")}), pragma_page_count, pragma_page_size`
}

const statistics = (facts: ReadonlyArray<ObjectFact>): string =>
  facts.filter(isSqliteFact).some(({ analyzed }) => analyzed)
    ? `union all select 'stat', tbl, null, stat, null, null, null from sqlite_stat1
       join wanted on wanted.name = tbl where stat is not null`
    : ""

const children = `
  union all select 'child', wanted.name, f.id, l.name, f."from", null, null
  from pragma_table_list l, pragma_foreign_key_list(l.name, 'main') f
  join wanted on wanted.name = f."table" collate nocase
  where l.schema = 'main' and l.type = 'table' and l.name not like 'sqlite\\_%' escape '\\'`

/** Also the order in which things are met, since a union has none of its own. */
const factRows = (sql: SqlClient, facts: ReadonlyArray<ObjectFact>, full: boolean) =>
  rowsOf(FactRow)(
    sql.unsafe(
      `with wanted as materialized (select value as name from json_each(?))
      select 'sql' as fact, s.name as object, null as n, s.sql as a, null as b, null as c, null as d
      from sqlite_schema s join wanted on wanted.name = s.name where s.type in ('table', 'view') and s.sql is not null
      union all select * from (
        select 'foreign', wanted.name, f.id, f."table", f."from", f."to", null
        from wanted, pragma_foreign_key_list(wanted.name, 'main') f order by f.id, f.seq)
      union all select 'index', wanted.name, i."unique", i.name, i.origin,
        (select s.sql from sqlite_schema s where s.type = 'index' and s.name = i.name),
        (select json_group_array(x.name) from (select name from pragma_index_xinfo(i.name, 'main')
          where "key" order by seqno) x)
      from wanted, pragma_index_list(wanted.name, 'main') i
      ${full ? children : ""} ${statistics(facts)} ${counts(facts)}`,
      [idsOf(facts)]
    )
  )

const only = <F extends FactRow["fact"]>(rows: ReadonlyArray<FactRow>, fact: F) =>
  rows.filter((row): row is Extract<FactRow, { fact: F }> => row.fact === fact)

const listed = (names: ReadonlyArray<string>) => `(${names.map(sqliteName).join(", ")})`

/** The larger of the estimates that are plausible; the exact number where few rows were counted. */
const rowsFrom = (rows: ReadonlyArray<FactRow>): number | null => {
  const [count] = only(rows, "count")
  if (count === undefined) return null
  if (count.n <= countUpTo) return count.n
  const analyzed = only(rows, "stat").map(({ a }) => Number.parseInt(a, 10))
  const plausible = [...analyzed, ...(count.b === null ? [] : [count.b])].filter(
    (estimate) => estimate > countUpTo && estimate <= count.c / leastRowBytes
  )
  return plausible[0] ?? null
}

const describeOne = (rows: ReadonlyArray<FactRow>, kind: string, full: boolean): Description => {
  const definition = only(rows, "sql")[0]?.a ?? null
  const indexes = only(rows, "index")
  const foreign = [...groupBy(only(rows, "foreign"), ({ n }) => String(n)).values()].reverse()
  const children = groupBy(only(rows, "child"), ({ a, n }) => `${n} ${a}`)
  return present({
    rows: rowsFrom(rows),
    foreignKeys: foreign.map((key) => {
      const to = key.flatMap(({ c }) => c ?? [])
      return {
        columns: key.map(({ b }) => sqliteName(b)),
        references: `${sqliteName(key[0]?.a ?? "")}${to.length === key.length ? listed(to) : ""}`
      }
    }),
    checks:
      kind === "table" && definition !== null
        ? readTable(definition).checks.map((check) => clip(check, longest.expression) ?? "")
        : null,
    unique: indexes
      .filter(({ b }) => b === "u")
      .map(({ d }) => d.map((name) => sqliteName(name ?? "?")))
      .reverse(),
    indexes: full
      ? indexes
          .filter(({ b }) => b === "c")
          .map(({ a, c, n }) => {
            const { keys, where } = readIndex(c ?? "")
            return {
              name: sqliteName(a),
              columns: keys,
              ...present({
                unique: n > 0 ? (true as const) : null,
                where: clip(where, longest.expression)
              })
            }
          })
          .reverse()
      : null,
    referencedBy: full
      ? [...children.values()].map((key) => `${sqliteName(key[0]?.a ?? "")}${listed(key.map(({ b }) => b))}`)
      : null,
    definition: full ? clip(definition, longest.definition) : null
  })
}

const describe: Reader["describe"] = (sql, facts, detail) =>
  Effect.map(factRows(sql, facts, detail === "full"), (rows) => {
    const groups = groupBy(rows, ({ object }) => object)
    return new Map(
      facts.map(({ id, kind }) => [id, describeOne(groups.get(id) ?? [], kind, detail === "full")])
    )
  })

export const reader: Reader = { objects, columns, describe }
