/** The catalog of a PostgreSQL database: what the login may read, in every schema that is not the engine's own. */
import type { SqlClient } from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Column, Columns, Description, Detail, ObjectFact, Reader } from "../CatalogReader.js"
import { clip, conditionOf, groupBy, longest, present, rowsOf, stripParentheses } from "./Reader.js"

const kinds: Readonly<Record<string, string>> = {
  r: "table",
  p: "table",
  v: "view",
  m: "materialized_view",
  f: "foreign_table"
}

const Strings = Schema.parseJson(Schema.Array(Schema.String))
const MaybeStrings = Schema.NullOr(Strings)

const ObjectRow = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  bare: Schema.String,
  schema: Schema.String,
  kind: Schema.String,
  comment: Schema.NullOr(Schema.String),
  total: Schema.NumberFromString
})

/** How a statement names a relation: bare where the search path finds that one. */
const reference = (visible: string, namespace: string, name: string) =>
  `case when ${visible} then '' else pg_catalog.quote_ident(${namespace}) || '.' end || pg_catalog.quote_ident(${name})`

/** The same for a relation of which only the oid is at hand. */
const referenceOf = (oid: string) =>
  `(select ${reference("pg_catalog.pg_table_is_visible(rc.oid)", "rn.nspname", "rc.relname")}
    from pg_catalog.pg_class rc join pg_catalog.pg_namespace rn on rn.oid = rc.relnamespace where rc.oid = ${oid})`

/** `offset 0`: visibility, which is not cheap, is asked once for each relation. */
const objectsSql = `
  select oid::text as id, ${reference("visible", "schema", "bare")} as name, bare::text, schema::text, kind::text,
    (select description from pg_catalog.pg_description
      where objoid = oid and classoid = 'pg_catalog.pg_class'::regclass and objsubid = 0) as comment,
    count(*) over ()::text as total
  from (select c.oid, c.relname as bare, n.nspname as schema, c.relkind as kind,
      pg_catalog.pg_table_is_visible(c.oid) as visible
    from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'p', 'v', 'm', 'f')
      and ($2::boolean or not c.relispartition)
      and (n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
        or $2::boolean and n.nspname || '.' || c.relname ilike any ($1::text[]))
      and ($1::text[] = '{}' or c.relname ilike any ($1::text[])
        or n.nspname || '.' || c.relname ilike any ($1::text[]))
      and pg_catalog.has_schema_privilege(n.oid, 'usage')
      and pg_catalog.has_any_column_privilege(c.oid, 'select') offset 0) o
  order by not visible, schema, bare limit $3::integer`

const objects: Reader["objects"] = (sql, { exact, likes, limit }) =>
  Effect.map(rowsOf(ObjectRow)(sql.unsafe(objectsSql, [likes, exact, limit])), (rows) => ({
    total: rows[0]?.total ?? 0,
    objects: rows.map(
      ({ bare, comment, id, kind, name, schema }): ObjectFact => ({
        id,
        name,
        bare,
        qualified: `${schema}.${bare}`,
        kind: kinds[kind] ?? kind,
        comment: clip(comment, longest.comment)
      })
    )
  }))

const ColumnRow = Schema.Struct({
  object: Schema.String,
  name: Schema.String,
  type: Schema.String,
  base: Schema.NullOr(Schema.String),
  nullable: Schema.Boolean,
  expression: Schema.NullOr(Schema.String),
  generated: Schema.Boolean,
  identity: Schema.String,
  values: MaybeStrings,
  checks: MaybeStrings,
  comment: Schema.NullOr(Schema.String)
})

const oids = (facts: ReadonlyArray<ObjectFact>) => facts.map(({ id }) => id)

const identities: Readonly<Record<string, string>> = { a: "always", d: "by default" }

const columnOf = (row: typeof ColumnRow.Type): Column => ({
  name: row.name,
  ...present({
    type: row.type,
    base: row.base,
    nullable: row.nullable ? null : (false as const),
    default: row.generated ? null : clip(row.expression, longest.default),
    generated: row.generated ? clip(stripParentheses(row.expression ?? ""), longest.expression) : null,
    identity: identities[row.identity],
    values: row.values,
    checks: row.checks?.map((text) => clip(conditionOf(text), longest.expression) ?? ""),
    comment: clip(row.comment, longest.comment)
  })
})

const columns: Reader["columns"] = (sql, facts) =>
  Effect.map(
    rowsOf(ColumnRow)(
      sql.unsafe(
        `select a.attrelid::text as object, pg_catalog.quote_ident(a.attname) as name,
          pg_catalog.format_type(a.atttypid, a.atttypmod) as type,
          case when t.typtype = 'd' then pg_catalog.format_type(t.typbasetype, t.typtypmod) end as base,
          not (a.attnotnull or t.typtype = 'd' and t.typnotnull) as nullable,
          pg_catalog.pg_get_expr(d.adbin, d.adrelid) as expression, a.attgenerated <> '' as generated,
          a.attidentity::text as identity,
          case when t.typtype in ('e', 'd') or t.typelem <> 0 then
            (select pg_catalog.json_agg(e.enumlabel order by e.enumsortorder)::text from pg_catalog.pg_enum e
              where e.enumtypid in (t.oid, t.typbasetype, t.typelem)) end as values,
          case when t.typtype = 'd' then
            (select pg_catalog.json_agg(pg_catalog.pg_get_constraintdef(k.oid, true) order by k.conname)::text
              from pg_catalog.pg_constraint k where k.contypid = t.oid and k.contype = 'c') end as checks,
          c.description as comment
        from pg_catalog.pg_attribute a join pg_catalog.pg_type t on t.oid = a.atttypid
          left join pg_catalog.pg_description c
            on c.objoid = a.attrelid and c.classoid = 'pg_catalog.pg_class'::regclass and c.objsubid = a.attnum
          left join pg_catalog.pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
        where a.attrelid = any ($1::oid[]) and a.attnum > 0 and not a.attisdropped
          and pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'select')
        order by a.attrelid, a.attnum`,
        [oids(facts)]
      )
    ),
    (rows) =>
      new Map(
        [...groupBy(rows, ({ object }) => object)].map(([object, own]): [string, Columns] => [
          object,
          { columns: own.map(columnOf) }
        ])
      )
  )

const Constraint = Schema.Struct({
  type: Schema.Literal("p", "u", "f", "c", "x"),
  columns: Schema.NullOr(Schema.Array(Schema.String)),
  table: Schema.NullOr(Schema.String),
  to: Schema.NullOr(Schema.Array(Schema.String)),
  /** The condition of a check, the whole of an exclusion. */
  text: Schema.NullOr(Schema.String)
})

const IndexFact = Schema.Struct({
  name: Schema.String,
  columns: Schema.Array(Schema.String),
  include: Schema.NullOr(Schema.Array(Schema.String)),
  unique: Schema.Boolean,
  method: Schema.String,
  where: Schema.NullOr(Schema.String)
})

const DescriptionRow = Schema.Struct({
  object: Schema.String,
  rows: Schema.NullOr(Schema.NumberFromString),
  partitions: Schema.NumberFromString,
  partition_key: Schema.NullOr(Schema.String),
  partition: Schema.Boolean,
  parents: MaybeStrings,
  constraints: Schema.NullOr(Schema.parseJson(Schema.Array(Constraint))),
  indexes: Schema.NullOr(Schema.parseJson(Schema.Array(IndexFact))),
  children: MaybeStrings,
  definition: Schema.NullOr(Schema.String)
})

/** The names of the columns with these numbers, as a JSON array. */
const columnNames = (relation: string, numbers: string) =>
  `(select pg_catalog.json_agg(pg_catalog.quote_ident(ka.attname) order by u.n)
    from pg_catalog.unnest(${numbers}) with ordinality u(attnum, n)
      join pg_catalog.pg_attribute ka on ka.attrelid = ${relation} and ka.attnum = u.attnum)`

/** Foreign keys to the partitions of a table stand beside the one that was written. */
const isWritten = (constraint: string) =>
  `(${constraint}.conparentid = 0 or not exists (select 1 from pg_catalog.pg_constraint w
    where w.oid = ${constraint}.conparentid and w.conrelid = ${constraint}.conrelid))`

const constraints = `
  (select pg_catalog.json_agg(pg_catalog.json_build_object('type', x.type, 'columns', x.columns, 'table', x.target,
      'to', x.columns_to, 'text', x.text) order by x.type, x.name)::text
    from (
      select k.contype::text as type, k.conname as name, ${columnNames("k.conrelid", "k.conkey")} as columns,
        case when k.contype = 'f' then ${referenceOf("k.confrelid")} end as target,
        case when k.contype = 'f' then ${columnNames("k.confrelid", "k.confkey")} end as columns_to,
        case when k.contype in ('c', 'x') then pg_catalog.pg_get_constraintdef(k.oid, true) end as text
      from pg_catalog.pg_constraint k
      where k.conrelid = c.oid and k.contype in ('p', 'u', 'f', 'c', 'x') and ${isWritten("k")}
    ) x)`

const indexes = `
  (select pg_catalog.json_agg(pg_catalog.json_build_object('name', pg_catalog.quote_ident(ic.relname),
      'unique', i.indisunique, 'method', am.amname, 'where', pg_catalog.pg_get_expr(i.indpred, i.indrelid, true),
      'columns', (select pg_catalog.json_agg(pg_catalog.pg_get_indexdef(i.indexrelid, p, true)
          || case when i.indoption[p - 1] & 1 = 1 then ' desc' else '' end order by p)
        from pg_catalog.generate_series(1, i.indnkeyatts) p),
      'include', (select pg_catalog.json_agg(pg_catalog.pg_get_indexdef(i.indexrelid, p, true) order by p)
        from pg_catalog.generate_series(i.indnkeyatts + 1, i.indnatts) p)) order by ic.relname)::text
    from pg_catalog.pg_index i join pg_catalog.pg_class ic on ic.oid = i.indexrelid
      join pg_catalog.pg_am am on am.oid = ic.relam
    where i.indrelid = c.oid and i.indislive
      and not exists (select 1 from pg_catalog.pg_constraint k where k.conrelid = i.indrelid and k.conindid = i.indexrelid and k.contype in ('p', 'u', 'x')))`

/** Who points here is in no index of the catalog, so that it is read once for all objects. */
const children = `
  (select k.confrelid, pg_catalog.json_agg(${referenceOf("k.conrelid")}
      || '(' || (select pg_catalog.string_agg(pg_catalog.quote_ident(ka.attname), ', ' order by u.n)
        from pg_catalog.unnest(k.conkey) with ordinality u(attnum, n)
          join pg_catalog.pg_attribute ka on ka.attrelid = k.conrelid and ka.attnum = u.attnum) || ')'
      order by k.conrelid)::text as names
    from pg_catalog.pg_constraint k
    where k.confrelid = any ($1::oid[]) and k.contype = 'f' and k.conparentid = 0 group by k.confrelid)`

/** A table that was never analysed has what the statistics have counted since; an empty file has no rows. */
const rowsOfStorage = (relation: string) =>
  `case when ${relation}.relkind in ('r', 'm') then
      case when ${relation}.reltuples > 0 then ${relation}.reltuples::bigint
        when pg_catalog.pg_relation_size(${relation}.oid) = 0 then 0
        else nullif(pg_catalog.pg_stat_get_live_tuples(${relation}.oid), 0) end
    when ${relation}.relkind = 'f' and ${relation}.reltuples > 0 then ${relation}.reltuples::bigint end`

const describeSql = (full: boolean) => `
  select c.oid::text as object,
    case when c.relkind = 'p' then (select sum(${rowsOfStorage("l")})
        from pg_catalog.pg_partition_tree(c.oid) t join pg_catalog.pg_class l on l.oid = t.relid where t.isleaf)
      else ${rowsOfStorage("c")} end::text as rows,
    (select count(*) from pg_catalog.pg_inherits i where i.inhparent = c.oid and c.relkind = 'p')::text as partitions,
    pg_catalog.pg_get_partkeydef(c.oid) as partition_key, c.relispartition as partition,
    (select pg_catalog.json_agg(${referenceOf("i.inhparent")} order by i.inhseqno)::text
      from pg_catalog.pg_inherits i where i.inhrelid = c.oid) as parents,
    ${constraints} as constraints,
    ${full ? indexes : "null"} as indexes,
    ${full ? "h.names" : "null"} as children,
    ${full ? "case when c.relkind in ('v', 'm') then pg_catalog.pg_get_viewdef(c.oid, true) end" : "null"} as definition
  from pg_catalog.pg_class c ${full ? `left join ${children} h on h.confrelid = c.oid` : ""}
  where c.oid = any ($1::oid[])`

const descriptionOf = (row: typeof DescriptionRow.Type): Description => {
  const all = row.constraints ?? []
  const columnsOf = (type: "p" | "u") =>
    all.filter((each) => each.type === type).map(({ columns }) => columns ?? [])
  const parents = row.parents ?? []
  return present({
    rows: row.rows,
    primaryKey: columnsOf("p")[0],
    foreignKeys: all
      .filter(({ type }) => type === "f")
      .map(({ columns, table, to }) => ({
        columns: columns ?? [],
        references: `${table}(${(to ?? []).join(", ")})`
      })),
    checks: all
      .filter(({ type }) => type === "c" || type === "x")
      .map(({ text, type }) => clip(type === "x" ? text : conditionOf(text ?? ""), longest.expression) ?? ""),
    partitions: row.partition_key === null ? null : row.partitions,
    partitionKey: row.partition_key,
    partitionOf: row.partition ? parents[0] : null,
    inherits: row.partition ? null : parents,
    unique: columnsOf("u"),
    indexes: row.indexes?.map(({ columns, include, method, name, unique, where }) => ({
      name,
      columns,
      ...present({
        unique: unique ? (true as const) : null,
        where: clip(where, longest.expression),
        include,
        method: method === "btree" ? null : method
      })
    })),
    referencedBy: row.children,
    definition: clip(row.definition?.trim() ?? null, longest.definition)
  })
}

const describe = (sql: SqlClient, facts: ReadonlyArray<ObjectFact>, detail: Exclude<Detail, "names">) => {
  const full = detail === "full"
  return Effect.map(
    rowsOf(DescriptionRow)(sql.unsafe(describeSql(full), [oids(facts)])),
    (rows) => new Map(rows.map((row) => [row.object, descriptionOf(row)]))
  )
}

export const reader: Reader = { objects, columns, describe }
