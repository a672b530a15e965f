/**
 * The adapters. Each has `Config` (a Schema with defaults and `Redacted` secrets), `make(options)` (scoped) and
 * `layer(options)`; both take Config's fields, without those that have a default.
 *
 * Nothing starts by importing this module. A driver is loaded when an adapter is built, and its source is contacted
 * with the first call.
 *
 * @module
 */

/** Workbooks (`.xlsx`, `.xlsm`, `.xltx`) and delimited text, queried with SQLite's SQL. */
export * as Excel from "./Adapter/Excel.js"
/** PostgreSQL. */
export * as Postgres from "./Adapter/Postgres.js"
/** For those who write an adapter: an `@effect/sql` client over its own way of running statements. */
export * as ReadClient from "./Adapter/ReadClient.js"
/** SQLite database files. */
export * as Sqlite from "./Adapter/Sqlite.js"
/** SQL Server, and what speaks its protocol and dialect. */
export * as SqlServer from "./Adapter/SqlServer.js"
/** Spans of an adapter's statements, by OpenTelemetry's conventions; ours have them. */
export * as Telemetry from "./Adapter/Telemetry.js"
