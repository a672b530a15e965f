/** The tool `query`: one read statement, its rows within limits. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type Hints, truncationNotes } from "../Hint.js"
import * as QueryResult from "../QueryResult.js"
import type { SourcesService } from "../Sources.js"
import {
  checkCap,
  decodeArguments,
  numberField,
  paramsField,
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

export const make = (sources: SourcesService, hints: Hints): Tool<QueryResult.QueryResult> => {
  const input = argumentsOf(sources)
  const decode = decodeArguments(input)
  const dialects = [
    ...new Set(sources.all.map(({ dialect }) => `${dialect.language} (${dialect.placeholder})`))
  ].join(", ")
  const tellsSchema = sources.all.some(({ dialect }) => dialect.catalog !== undefined)
  return {
    name: "query",
    title: "Run a read-only SQL query",
    description:
      `Runs one read-only SQL statement and returns its rows. Dialect and placeholders for params: ${dialects}. ` +
      "Writes are refused. Large results are cut (truncated: true): aggregate, filter or page in SQL. " +
      `${tellsSchema ? "Call schema first when names are unknown. " : ""}${sourcesSentence(sources)}`,
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
        const query = yield* source.admit({ sql: args.sql, params: args.params ?? [] })
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
        const notes = [...rowSet.notes, ...truncationNotes(rowSet, source.dialect)]
        const value = QueryResult.fromRowSet({ ...rowSet, notes }, format, elapsed)
        return { value, facts: { rowCount: value.rowCount, truncated: value.truncated } }
      })
  }
}
