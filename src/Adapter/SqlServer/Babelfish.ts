/**
 * Babelfish speaks this protocol and dialect over PostgreSQL. It hears that a statement should stop only when the statement
 * has ended, so that PostgreSQL's own timeout has to end it.
 */

/** A little before the caller's deadline, so that the engine ends the statement and its session can be used on. */
const margin = (timeoutMs: number) => Math.min(1000, timeoutMs * 0.1)

/**
 * Part of a batch that bounds the statements behind it. It does nothing on SQL Server, which does not know the function
 * and therefore must not see it before it runs.
 */
export const limitStatement = (timeoutMs: number): string =>
  "IF SERVERPROPERTY('Babelfish') = 1 " +
  `EXEC(N'SELECT set_config(''statement_timeout'', ''${Math.max(1, Math.floor(timeoutMs - margin(timeoutMs)))}'', false)')`
