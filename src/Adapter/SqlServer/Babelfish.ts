/**
 * Babelfish speaks this protocol and dialect over PostgreSQL. It hears that a statement should stop only when the statement
 * has ended, so that PostgreSQL's own timeout has to end it.
 */

/** Answers with 1 on Babelfish, with null on SQL Server. */
export const identify = "SELECT SERVERPROPERTY('Babelfish')"

/** A little before the caller's deadline, so that the engine ends the statement and its session can be used on. */
const margin = (timeoutMs: number) => Math.min(1000, timeoutMs * 0.1)

/** A batch that bounds the statements behind it. */
export const limitStatements = (timeoutMs: number): string =>
  `SELECT set_config('statement_timeout', '${Math.max(1, Math.floor(timeoutMs - margin(timeoutMs)))}', false)`
