/** The catalog of an SQL Server database: what the login may see of its tables, views and synonyms. */
import type { SqlClient } from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Column, Columns, Description, Detail, ObjectFact, Reader } from "../CatalogReader.js"
import { reserved } from "../Policy/TransactSql/Words.js"
import { transactName } from "./Name.js"
import { clip, groupBy, longest, present, rowsOf, stripParentheses } from "./Reader.js"

const quoted = (name: string) => transactName(name, reserved)

const kinds: Readonly<Record<string, string>> = { U: "table", V: "view", SN: "synonym" }

const ObjectRow = Schema.Struct({
  id: Schema.Number,
  schema: Schema.String,
  bare: Schema.String,
  type: Schema.String,
  comment: Schema.NullOr(Schema.String),
  own: Schema.Number,
  total: Schema.Number
})

/** How a statement names an object: bare in the login's own schema. */
const reference = (schema: string, name: string, own: boolean) =>
  own ? quoted(name) : `${quoted(schema)}.${quoted(name)}`

const matching = (sql: SqlClient, likes: ReadonlyArray<string>) =>
  likes.length === 0
    ? sql.literal("1 = 1")
    : sql.or(
        likes.flatMap((like) => [
          sql`lower(o.name) like lower(${like}) escape '\\'`,
          sql`lower(s.name + '.' + o.name) like lower(${like}) escape '\\'`
        ])
      )

const objects: Reader["objects"] = (sql, { likes, limit }) =>
  Effect.map(
    rowsOf(ObjectRow)(sql`
      select o.object_id as id, s.name as [schema], o.name as bare, o.type,
        cast(p.value as nvarchar(4000)) as comment, count(*) over () as total,
        case when s.name = schema_name() then 1 else 0 end as own
      from sys.objects o join sys.schemas s on s.schema_id = o.schema_id
        left join sys.extended_properties p
          on p.class = 1 and p.major_id = o.object_id and p.minor_id = 0 and p.name = 'MS_Description'
      where o.type in ('U', 'V', 'SN') and o.is_ms_shipped = 0 and ${matching(sql, likes)}
      order by own desc, s.name, o.name offset 0 rows fetch next ${sql.literal(String(limit))} rows only`),
    (rows) => ({
      total: rows[0]?.total ?? 0,
      objects: rows.map(
        ({ bare, comment, id, own, schema, type }): ObjectFact => ({
          id: String(id),
          name: reference(schema, bare, own > 0),
          bare,
          qualified: `${schema}.${bare}`,
          kind: kinds[type.trim()] ?? type.trim(),
          comment: clip(comment, longest.comment)
        })
      )
    })
  )

const ColumnRow = Schema.Struct({
  object: Schema.Number,
  name: Schema.String,
  type: Schema.String,
  base: Schema.NullOr(Schema.String),
  max_length: Schema.Number,
  precision: Schema.Number,
  scale: Schema.Number,
  nullable: Schema.Boolean,
  identity: Schema.Boolean,
  computed: Schema.NullOr(Schema.String),
  default: Schema.NullOr(Schema.String),
  comment: Schema.NullOr(Schema.String)
})

/** Our own numbers from the catalog, which no parameter limit bounds. */
const listOf = (sql: SqlClient, facts: ReadonlyArray<ObjectFact>) =>
  sql.literal(facts.map(({ id }) => Number(id)).join(", "))

/** A type as a definition writes it. */
const typeOf = (name: string, row: typeof ColumnRow.Type): string => {
  const length = (unit: number) => (row.max_length < 0 ? "max" : String(row.max_length / unit))
  switch (name.toLowerCase()) {
    case "char":
    case "varchar":
    case "binary":
    case "varbinary":
      return `${name}(${length(1)})`
    case "nchar":
    case "nvarchar":
      return `${name}(${length(2)})`
    case "decimal":
    case "numeric":
      return `${name}(${row.precision},${row.scale})`
    case "time":
    case "datetime2":
    case "datetimeoffset":
      return `${name}(${row.scale})`
    default:
      return name
  }
}

const columnOf = (row: typeof ColumnRow.Type): Column => ({
  name: quoted(row.name),
  ...present({
    type: row.base === null ? typeOf(row.type, row) : row.type,
    base: row.base === null ? null : typeOf(row.base, row),
    nullable: row.nullable ? null : (false as const),
    identity: row.identity ? "always" : null,
    generated: row.computed === null ? null : clip(stripParentheses(row.computed), longest.expression),
    default:
      row.computed !== null || row.default === null
        ? null
        : clip(stripParentheses(row.default), longest.default),
    comment: clip(row.comment, longest.comment)
  })
})

const columns: Reader["columns"] = (sql, facts) =>
  Effect.map(
    rowsOf(ColumnRow)(sql`
      select c.object_id as object, c.name, t.name as type, b.name as base, c.max_length, c.precision, c.scale,
        c.is_nullable as nullable, c.is_identity as [identity], cast(k.definition as nvarchar(4000)) as computed,
        cast(d.definition as nvarchar(4000)) as [default], cast(p.value as nvarchar(4000)) as comment
      from sys.columns c join sys.types t on t.user_type_id = c.user_type_id
        left join sys.types b on t.is_user_defined = 1 and b.user_type_id = t.system_type_id
        left join sys.computed_columns k on k.object_id = c.object_id and k.column_id = c.column_id
        left join sys.default_constraints d on d.parent_object_id = c.object_id and d.parent_column_id = c.column_id
        left join sys.extended_properties p
          on p.class = 1 and p.major_id = c.object_id and p.minor_id = c.column_id and p.name = 'MS_Description'
      where c.object_id in (${listOf(sql, facts)})
      order by c.object_id, c.column_id`),
    (rows) =>
      new Map(
        [...groupBy(rows, ({ object }) => String(object))].map(([object, own]): [string, Columns] => [
          object,
          { columns: own.map(columnOf) }
        ])
      )
  )

const FactRow = Schema.Struct({
  fact: Schema.Literal("own", "rows", "index", "foreign", "child", "check", "synonym", "definition"),
  object: Schema.Number,
  /** Which index or key, and which of its columns. */
  n: Schema.NullOr(Schema.Number),
  m: Schema.NullOr(Schema.Number),
  a: Schema.NullOr(Schema.String),
  b: Schema.NullOr(Schema.String),
  c: Schema.NullOr(Schema.String),
  d: Schema.NullOr(Schema.String)
})
type FactRow = typeof FactRow.Type

/** A text of one type and collation, whatever the branch of a union it stands in: a bare null would be an int. */
const string = (text: string) => `cast(${text} as nvarchar(4000)) collate database_default`
const noString = string("null")
const noNumber = "cast(null as int)"

/** Babelfish counts no rows before a table is analysed, and says 0. */
const rowsSql = (ids: string) => `
  select 'rows' as fact, p.object_id as object, ${noNumber} as n, ${noNumber} as m,
    ${string("case when serverproperty('babelfish') is null then sum(p.rows) else nullif(sum(p.rows), 0) end")} as a,
    ${noString} as b, ${noString} as c, ${noString} as d
  from sys.partitions p where p.object_id in (${ids}) and p.index_id in (0, 1) group by p.object_id`

/** `a` its name, `b` a column, `c` which kind of index and column, `d` its filter. */
const indexSql = (ids: string, full: boolean) => `
  select 'index', i.object_id, i.index_id,
    case when x.is_included_column = 1 then 100000 + x.index_column_id else x.key_ordinal end, ${string("i.name")}, ${string("c.name")},
    ${string(`case when i.is_primary_key = 1 then 'p' when i.is_unique_constraint = 1 then 'c' when i.is_unique = 1 then 'u' else 'i' end
      + case when x.is_included_column = 1 then 'i' when x.is_descending_key = 1 then 'd' else 'a' end`)},
    ${string("i.filter_definition")}
  from sys.indexes i join sys.index_columns x on x.object_id = i.object_id and x.index_id = i.index_id
    join sys.columns c on c.object_id = x.object_id and c.column_id = x.column_id
  where i.object_id in (${ids}) and (x.key_ordinal > 0 or x.is_included_column = 1)
    ${full ? "" : "and (i.is_primary_key = 1 or i.is_unique_constraint = 1)"}`

/** `a` and `b` the other table, `c` the column here, `d` the column there; also the columns of tables that point here. */
const foreignSql = (ids: string, child: boolean) => `
  select '${child ? "child" : "foreign"}', k.${child ? "referenced_object_id" : "parent_object_id"}, k.constraint_object_id,
    k.constraint_column_id, ${string("s.name")}, ${string("o.name")}, ${string("c.name")}, ${string("r.name")}
  from sys.foreign_key_columns k
    join sys.objects o on o.object_id = k.${child ? "parent_object_id" : "referenced_object_id"}
    join sys.schemas s on s.schema_id = o.schema_id
    join sys.columns c on c.object_id = k.parent_object_id and c.column_id = k.parent_column_id
    join sys.columns r on r.object_id = k.referenced_object_id and r.column_id = k.referenced_column_id
  where k.${child ? "referenced_object_id" : "parent_object_id"} in (${ids})`

const describeSql = (ids: string, full: boolean) => `${rowsSql(ids)}
  union all select 'own', 0, ${noNumber}, ${noNumber}, ${string("schema_name()")}, ${noString}, ${noString}, ${noString}
  union all ${indexSql(ids, full)}
  union all ${foreignSql(ids, false)}
  union all select 'check', parent_object_id, ${noNumber}, ${noNumber}, ${string("definition")}, ${noString}, ${noString}, ${noString}
    from sys.check_constraints where parent_object_id in (${ids})
  union all select 'synonym', object_id, ${noNumber}, ${noNumber}, ${string("base_object_name")}, ${noString}, ${noString}, ${noString}
    from sys.synonyms where object_id in (${ids})
  ${
    full
      ? `union all ${foreignSql(ids, true)}
  union all select 'definition', object_id, ${noNumber}, ${noNumber}, ${string("definition")}, ${noString}, ${noString}, ${noString}
    from sys.sql_modules where object_id in (${ids})`
      : ""
  }
  order by fact, object, n, m`

const only = (rows: ReadonlyArray<FactRow>, fact: FactRow["fact"]) => rows.filter((row) => row.fact === fact)
const listed = (names: ReadonlyArray<string | null>) =>
  `(${names.map((each) => quoted(each ?? "")).join(", ")})`
const grouped = (rows: ReadonlyArray<FactRow>, fact: FactRow["fact"]) => [
  ...groupBy(only(rows, fact), ({ n }) => String(n)).values()
]

const describeOne = (rows: ReadonlyArray<FactRow>, own: string): Description => {
  const indexes = grouped(rows, "index").map((keys) => ({
    name: keys[0]?.a ?? "",
    kind: keys[0]?.c?.[0],
    where: keys[0]?.d ?? null,
    columns: keys
      .filter(({ c }) => c?.[1] !== "i")
      .map(({ b, c }) => `${quoted(b ?? "")}${c?.[1] === "d" ? " desc" : ""}`),
    include: keys.filter(({ c }) => c?.[1] === "i").map(({ b }) => quoted(b ?? ""))
  }))
  const keysOf = (kind: string) => indexes.filter((each) => each.kind === kind).map((each) => each.columns)
  const other = (row: FactRow | undefined) => reference(row?.a ?? "", row?.b ?? "", row?.a === own)
  const [count] = only(rows, "rows")
  return present({
    rows: count?.a == null ? null : Number(count.a),
    primaryKey: keysOf("p")[0],
    foreignKeys: grouped(rows, "foreign").map((key) => ({
      columns: key.map(({ c }) => quoted(c ?? "")),
      references: `${other(key[0])}${listed(key.map(({ d }) => d))}`
    })),
    checks: only(rows, "check").map(({ a }) => clip(stripParentheses(a ?? ""), longest.expression) ?? ""),
    unique: keysOf("c"),
    indexes: indexes
      .filter(({ kind }) => kind === "u" || kind === "i")
      .map(({ columns, include, kind, name, where }) => ({
        name: quoted(name),
        columns,
        ...present({
          unique: kind === "u" ? (true as const) : null,
          where: where === null ? null : clip(stripParentheses(where), longest.expression),
          include
        })
      })),
    referencedBy: grouped(rows, "child").map((key) => `${other(key[0])}${listed(key.map(({ c }) => c))}`),
    target: only(rows, "synonym")[0]?.a,
    definition: clip(only(rows, "definition")[0]?.a?.trim() ?? null, longest.definition)
  })
}

const describe = (sql: SqlClient, facts: ReadonlyArray<ObjectFact>, detail: Exclude<Detail, "names">) =>
  Effect.map(
    rowsOf(FactRow)(sql.unsafe(describeSql(facts.map(({ id }) => Number(id)).join(", "), detail === "full"))),
    (rows) => {
      const groups = groupBy(rows, ({ object }) => String(object))
      const own = only(rows, "own")[0]?.a ?? ""
      return new Map(facts.map(({ id }) => [id, describeOne(groups.get(id) ?? [], own)]))
    }
  )

export const reader: Reader = { objects, columns, describe }
