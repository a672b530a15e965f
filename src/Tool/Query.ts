/** The tool `query`: one read statement, its rows within limits. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Engine } from "../Adapter.js"
import { type Hints, truncationNotes } from "../Hint.js"
import * as Policy from "../Policy.js"
import * as QueryResult from "../QueryResult.js"
import type { SourcesService } from "../Sources.js"
import {
  checkCap,
  decodeArguments,
  numberField,
  paramsField,
  placeholder,
  sourceField,
  sourceOf,
  sourcesSentence,
  sqlField,
  type Tool
} from "../Tool.js"

const argumentsOf = (sources: SourcesService) =>
  Schema.Struct({
    sql: sqlField,
    ...sourceField(sources),
    params: paramsField,
    maxRows: numberField(Math.max(...sources.all.map(({ limits }) => limits.maxRows))),
    timeoutMs: numberField(Math.max(...sources.all.map(({ limits }) => limits.timeoutMs))),
    format: Schema.optionalWith(
      Schema.Literal("records", "columnar").annotations({ description: "records or columnar" }),
      { exact: true }
    )
  })

const dialects: Record<Engine, string> = {
  sqlite: "SQLite",
  excel: "SQLite",
  csv: "SQLite",
  postgres: "PostgreSQL",
  mssql: "T-SQL"
}

export const make = (sources: SourcesService, hints: Hints): Tool<QueryResult.QueryResult> => {
  const input = argumentsOf(sources)
  const decode = decodeArguments(input)
  const engines = [...new Set(sources.all.map(({ engine }) => engine))]
  const dialect = [...new Set(engines.map((engine) => `${dialects[engine]} (${placeholder[engine]})`))].join(
    ", "
  )
  return {
    name: "query",
    title: "Run a read-only SQL query",
    description:
      `Runs one read-only SQL statement and returns its rows. Dialect and placeholders for params: ${dialect}. ` +
      "Writes are refused. Large results are cut (truncated: true): aggregate, filter or page in SQL. " +
      `Call schema first when names are unknown. ${sourcesSentence(sources)}`,
    input,
    output: QueryResult.QueryResult,
    run: (raw) =>
      Effect.gen(function* () {
        const args = yield* decode(raw)
        const source = sourceOf(sources, args.source)
        const { limits } = source
        yield* checkCap("maxRows", args.maxRows, limits.maxRows)
        yield* checkCap("timeoutMs", args.timeoutMs, limits.timeoutMs)
        const from = yield* Clock.currentTimeNanos
        const query = yield* Policy.admit(source.engine, { sql: args.sql, params: args.params ?? [] })
        const format = args.format ?? "records"
        const rowSet = yield* source
          .run(args.timeoutMs ?? limits.timeoutMs, (adapter, remainingMs) =>
            adapter.query(query, {
              maxRows: args.maxRows ?? limits.maxRows,
              maxBytes: limits.maxBytes,
              maxCellBytes: limits.maxCellBytes,
              format,
              timeoutMs: remainingMs
            })
          )
          .pipe(hints.onFailure(source, args.sql))
        const elapsed = Number((yield* Clock.currentTimeNanos) - from) / 1e6
        const notes = [...rowSet.notes, ...truncationNotes(rowSet, source.engine)]
        const value = QueryResult.fromRowSet({ ...rowSet, notes }, format, elapsed)
        return { value, facts: { rowCount: value.rowCount, truncated: value.truncated } }
      })
  }
}
