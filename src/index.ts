/**
 * The port that every adapter implements, what is around it, and the tools as Effects. The adapters themselves are in
 * `mcp-query/adapters`, the MCP server is in `mcp-query/server`.
 *
 * Nothing starts by importing this module, and no driver is loaded.
 *
 * @module
 */

/** The port: `Adapter.Adapter` is the service of any engine, `AdapterService` its shape. */
export * as Adapter from "./Adapter.js"
/** Where the server's lines go: one for each call and each change of a source's connection. */
export * as CallLog from "./CallLog.js"
/** For those who write an adapter: how an engine's catalog is read, for `schema` and for hints. */
export * as CatalogReader from "./CatalogReader.js"
/** For those who write an adapter: `Dialect.Dialect` describes an engine that is none of ours. */
export * as Dialect from "./Dialect.js"
/** The faults of a configuration, all in one error. */
export * as FatalError from "./FatalError.js"
/** From a statement to one that an adapter takes: `Policy.admit`. */
export * as Policy from "./Policy.js"
/** What a client is told of a failed call: `PublicError.ErrorAnswer` is the Schema of its text. */
export * as PublicError from "./PublicError.js"
/** Every way in which a call can fail, as tagged errors. */
export * as QueryError from "./QueryError.js"
/** The answer of a query: `QueryResult.QueryResult` is its Schema. */
export * as QueryResult from "./QueryResult.js"
/** For those who write an adapter: what a cell may be, and the builder that keeps rows within their limits. */
export * as Rows from "./Rows.js"
/** The answer of `schema`: `SchemaResult.SchemaResult` is what is said of one source, `SchemaAnswer` all that may come. */
export * as SchemaResult from "./SchemaResult.js"
/** Bounds of a call, and their defaults. */
export * as Limits from "./Settings/Limits.js"
/** Adapters under ids, with a queue, a deadline and a retry: `Sources.layer`. */
export * as Sources from "./Sources.js"
/** The tools without MCP: `Tools.layer`, then `query`, `schema` and `explain`. */
export * as Tools from "./Tools.js"
