/**
 * Babelfish speaks this protocol and dialect over PostgreSQL. It hears that a statement should stop only when the statement
 * has ended, so that PostgreSQL's own timeout has to end it.
 */

/**
 * Part of a batch that bounds the statements behind it. It does nothing on SQL Server, which does not know the function
 * and therefore must not see it before it runs.
 */
export const limitStatement = (timeoutMs: number): string =>
  "IF SERVERPROPERTY('Babelfish') = 1 " +
  `EXEC(N'SELECT set_config(''statement_timeout'', ''${Math.max(1, Math.ceil(timeoutMs))}'', false)')`
