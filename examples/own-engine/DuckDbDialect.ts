/**
 * DuckDB's Dialect: its statements are judged by its own parser, its catalog is read from its own tables. That nothing is
 * written rests on this, and on the way in which the adapter opens the file.
 */
import { DuckDBInstance } from "@duckdb/node-api"
import type { SqlClient } from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type CatalogReader, type Dialect, QueryError } from "mcp-query"

/** No other file, no network, no extension, and nobody can say otherwise afterwards. */
export const closedOff = {
  enable_external_access: "false",
  autoinstall_known_extensions: "false",
  autoload_known_extensions: "false",
  lock_configuration: "true"
}

// ---------------------------------------------------------------------------------------------------------------------
// Its statements

export const rejected = (reason: QueryError.RejectedReason, message: string) =>
  Effect.fail(new QueryError.QueryRejected({ reason, message }))

/** A DuckDB without data, for its parser: only what reads can be told as JSON. */
const parser = Effect.runSync(
  Effect.cached(Effect.promise(async () => (await DuckDBInstance.create(":memory:", closedOff)).connect()))
)

const Parsed = Schema.parseJson(
  Schema.Union(
    Schema.Struct({ error: Schema.Literal(false), statements: Schema.Array(Schema.Unknown) }),
    Schema.Struct({ error: Schema.Literal(true), error_type: Schema.String })
  )
)

const inspect: Dialect.Dialect["inspect"] = (sql) =>
  Effect.gen(function* () {
    const connection = yield* parser
    const rows = yield* Effect.promise(async () =>
      (await connection.run("select json_serialize_sql($1::varchar)", [sql])).getRowsJson()
    )
    const parsed = Schema.decodeUnknownOption(Parsed)(rows[0]?.[0])
    if (parsed._tag === "None")
      return yield* rejected("unverifiable", "The statement could not be checked and was not sent.")
    if (parsed.value.error)
      // What the parser does not understand the engine refuses better, when it prepares the statement.
      return parsed.value.error_type === "parser"
        ? "prepare_only"
        : yield* rejected("read_only", "Only a statement that reads may be sent.")
    return parsed.value.statements.length === 1
      ? "execute"
      : yield* rejected("multiple_statements", "Exactly one statement may be sent in a call.")
  })

// ---------------------------------------------------------------------------------------------------------------------
// Its catalog

const quoted = (name: string, reserved: boolean) =>
  /^[a-z_][a-z0-9_]*$/i.test(name) && !reserved ? name : `"${name.replaceAll('"', '""')}"`

const reservedWords = "(select keyword_name from duckdb_keywords() where keyword_category = 'reserved')"

const rowsOf =
  <A, I>(row: Schema.Schema<A, I>) =>
  <E>(statement: Effect.Effect<ReadonlyArray<unknown>, E>) =>
    Effect.flatMap(statement, Schema.decodeUnknown(Schema.Array(row)))

const ObjectRow = Schema.Struct({
  schema: Schema.String,
  name: Schema.String,
  kind: Schema.String,
  comment: Schema.NullOr(Schema.String),
  reserved: Schema.Boolean,
  total: Schema.Number
})

const matching = (sql: SqlClient, likes: ReadonlyArray<string>) =>
  likes.length === 0
    ? sql.literal("true")
    : sql.or(
        likes.flatMap((like) => [
          sql`table_name ilike ${like} escape '\\'`,
          sql`table_schema || '.' || table_name ilike ${like} escape '\\'`
        ])
      )

const ColumnRow = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  type: Schema.String,
  nullable: Schema.Boolean,
  reserved: Schema.Boolean
})

const catalog: CatalogReader.Reader = {
  objects: (sql, { likes, limit }) =>
    Effect.map(
      rowsOf(ObjectRow)(sql`
        select table_schema as schema, table_name as name, table_comment as comment,
          case when table_type = 'VIEW' then 'view' else 'table' end as kind,
          lower(table_name) in ${sql.literal(reservedWords)} as reserved, count(*) over () as total
        from information_schema.tables where table_catalog = current_database() and ${matching(sql, likes)}
        order by table_schema, table_name limit ${sql.literal(String(limit))}`),
      (rows) => ({
        total: rows[0]?.total ?? 0,
        objects: rows.map(({ comment, kind, name, reserved, schema }) => ({
          id: JSON.stringify([schema, name]),
          name:
            schema === "main" ? quoted(name, reserved) : `${quoted(schema, false)}.${quoted(name, false)}`,
          bare: name,
          qualified: `${schema}.${name}`,
          kind,
          comment
        }))
      })
    ),
  columns: (sql, objects) =>
    Effect.map(
      rowsOf(ColumnRow)(sql`
        select wanted.id, column_name as name, data_type as type, is_nullable = 'YES' as nullable,
          lower(column_name) in ${sql.literal(reservedWords)} as reserved
        from (select unnest(from_json(${JSON.stringify(objects.map(({ id }) => id))}, '["varchar"]')) as id) wanted
        join information_schema.columns
          on table_schema = json_extract_string(wanted.id, '$[0]') and table_name = json_extract_string(wanted.id, '$[1]')
        where table_catalog = current_database() order by ordinal_position`),
      (rows) =>
        new Map(
          objects.map(({ id }) => [
            id,
            {
              columns: rows
                .filter((row) => row.id === id)
                .map(({ name, nullable, reserved, type }) => ({
                  name: quoted(name, reserved),
                  type,
                  ...(nullable ? {} : { nullable: false as const })
                }))
            }
          ])
        )
    )
}

/** What the source and its adapter both name as their engine. */
export const dialect: Dialect.Dialect = {
  name: "duckdb",
  language: "DuckDB SQL",
  placeholder: "$1",
  inspect,
  countsStatements: true,
  nestedComments: true,
  catalog: Effect.succeed(catalog)
}
