/** The tools of a server, in the order in which clients see them, and the same as Effects for an application. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import type { Parameter } from "./Adapter.js"
import * as Hint from "./Hint.js"
import type { QueryError } from "./QueryError.js"
import type { QueryResult } from "./QueryResult.js"
import type { Format } from "./Rows.js"
import type { SchemaAnswer } from "./SchemaResult.js"
import { CurrentCall, Sources, type SourcesService } from "./Sources.js"
import * as Explain from "./Tool/Explain.js"
import * as Query from "./Tool/Query.js"
import * as Schema from "./Tool/Schema.js"
import type { Tool } from "./Tool.js"

/** Those of one server, which share what they learn for their hints. */
const toolsOf = (sources: SourcesService) => {
  const hints = Hint.make()
  return {
    query: Query.make(sources, hints),
    schema: Schema.make(sources),
    explain: Explain.make(sources, hints)
  }
}

export const make = (sources: SourcesService): ReadonlyArray<Tool> => {
  const { explain, query, schema } = toolsOf(sources)
  return [query, schema, explain]
}

/** Where a statement is sent. */
interface Target {
  /** One read-only statement in the source's dialect, 1 to 100,000 characters. */
  readonly sql: string
  /** A source's id; may be left out where there is one source only. */
  readonly source?: string
  /** At most 65,535, bound by position: `$1` (PostgreSQL), `?` (SQLite, workbooks, delimited text), `@p1` (SQL Server), or as a Dialect says. */
  readonly params?: ReadonlyArray<Parameter>
}

export type ExplainArguments = Target

export interface QueryArguments extends Target {
  /** Rows at most, from 1 to the source's own bound, which is the default. */
  readonly maxRows?: number
  /** Milliseconds until the statement is stopped, from 1 to the source's own bound, which is the default. */
  readonly timeoutMs?: number
  /** `records` (default): a row is an object by column name; `columnar`: an array in the order of `columns`. */
  readonly format?: Format
}

export interface SchemaArguments {
  /** A source's id; without it, and with several sources, the answer lists the sources. */
  readonly source?: string
  /** An exact name, or a pattern with `*`, of at most 2,000 characters; everything without it. */
  readonly name?: string
  /** Default: `columns` for an exact name, else `names`. */
  readonly detail?: "names" | "columns" | "full"
  /** Objects at most. */
  readonly limit?: number
}

/**
 * The tools without MCP. Each decodes its arguments as it does for a client (`InvalidInput`), admits the statement
 * (`QueryRejected`) and runs it in the source's turn, within its limits and its deadline.
 */
export interface ToolsService {
  readonly query: (args: QueryArguments) => Effect.Effect<QueryResult, QueryError>
  readonly schema: (args: SchemaArguments) => Effect.Effect<SchemaAnswer, QueryError>
  readonly explain: (args: ExplainArguments) => Effect.Effect<Explain.PlanResult, QueryError>
}

export class Tools extends Context.Tag("mcp-query/Tools")<Tools, ToolsService>() {}

/** Runs a tool outside of any client: nobody has to be waited for, and nobody counts attempts. */
const answer =
  <A extends object>(tool: Tool<A>) =>
  (args: unknown): Effect.Effect<A, QueryError> =>
    Effect.flatMap(Ref.make(0), (attempts) =>
      Effect.map(
        Effect.provideService(tool.run(args), CurrentCall, { attempts, awaitReader: Effect.void }),
        ({ value }) => value
      )
    )

/** The tools on the sources of the context. */
export const layer: Layer.Layer<Tools, never, Sources> = Layer.effect(
  Tools,
  Effect.map(Sources, (sources) => {
    const { explain, query, schema } = toolsOf(sources)
    return { query: answer(query), schema: answer(schema), explain: answer(explain) }
  })
)
