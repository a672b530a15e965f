/**
 * Everything that hangs on an engine's name, in one record. Our five are described in `Engines.ts`; an application
 * describes the engine of its own adapter, and hands the record to `Sources.layer` in place of a name.
 */
import type * as Effect from "effect/Effect"
import type { Reader } from "./CatalogReader.js"
import type { QueryRejected } from "./QueryError.js"

/** How an admitted statement may be used; see `mode` of `AdmittedQuery`. */
export type Mode = "execute" | "prepare_only"

/** How a statement may be used, or which rule it breaks. */
export type Verdict = Effect.Effect<Mode, QueryRejected>

/**
 * An engine and its SQL, as far as the server has to know them.
 *
 * Whether a source of such an engine is read-only is the application's own word. Our engines have their grammars here
 * and a guard in the engine behind them; here the one judge is {@link Dialect.inspect}, and the one guard is what the
 * adapter sets up in the engine (a read-only transaction, file or login). Clients are told that the tools only read.
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { type Dialect, QueryError } from "mcp-query"
 *
 * const duckdb: Dialect.Dialect = {
 *   name: "duckdb",
 *   language: "DuckDB SQL",
 *   placeholder: "$1",
 *   inspect: (sql) =>
 *     /^\s*(select|from|with|values)\b/i.test(sql)
 *       ? Effect.succeed("execute")
 *       : Effect.fail(
 *           new QueryError.QueryRejected({ reason: "statement_type", message: "Only a SELECT may be sent." })
 *         )
 * }
 * ```
 */
export interface Dialect {
  /** The engine's public name, in answers, descriptions and logs: `[a-z][a-z0-9_]*`, 40 characters at most, none of ours. */
  readonly name: string
  /** How its SQL is called for a model: `DuckDB SQL`. 1 to 40 characters. */
  readonly language: string
  /** How a statement writes its first positional parameter: `?`, `$1`, `@p1`. 1 to 20 characters. */
  readonly placeholder: string
  /**
   * Judges a statement: `execute` where it is one single read, else a `QueryRejected` with its reason (`read_only`,
   * `multiple_statements`, `statement_type`, `function_denied`, `unverifiable`) and a message that callers may see. What
   * it cannot read is `unverifiable`, or `prepare_only` where the adapter's engine may say what is wrong with it.
   *
   * It is asked for a text that is not blank and has 100,000 characters at most, and for each call anew. It has one
   * second: beyond it, the statement is refused as `unverifiable`. A defect in it sends nothing either.
   */
  readonly inspect: (sql: string) => Verdict
  /**
   * True where `inspect` counts statements by the engine's own grammar. Otherwise a semicolon with anything but white
   * space and further ones behind it is refused before `inspect` is asked, also inside a text or a comment: that rule
   * needs no grammar.
   */
  readonly countsStatements?: boolean | undefined
  /**
   * Reads the catalog over the adapter's `client`; an Effect, so that it may be loaded with the first call that needs
   * it. Without one the tool `schema` fails with `query_failed` `engine_error`, and hints know no names.
   */
  readonly catalog?: Effect.Effect<Reader> | undefined
  /** Whether a block comment may hold another one, as in PostgreSQL. Default: false. */
  readonly nestedComments?: boolean | undefined
  /** How a statement asks for the next rows. Default: `ORDER BY … LIMIT m OFFSET n`. */
  readonly paging?: string | undefined
  /** What else to know about parameters, after a mistake with them: `a cast such as $1::integer says what it is`. */
  readonly parameterHint?: string | undefined
  /** Whether there are logins: the log then tells with `source_connected` what `report` says of this one's rights. */
  readonly hasLogins?: boolean | undefined
}
