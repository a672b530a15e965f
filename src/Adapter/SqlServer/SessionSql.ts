/** The batches around every statement: a session that always means the same, and a transaction that never commits. */

/** Set anew before every statement, since a statement could only have changed them by breaking the policy. */
export const sessionOptions = [
  "SET ANSI_NULLS, ANSI_PADDING, ANSI_WARNINGS, ARITHABORT, CONCAT_NULL_YIELDS_NULL, QUOTED_IDENTIFIER ON",
  "SET NUMERIC_ROUNDABORT, IMPLICIT_TRANSACTIONS OFF",
  "SET XACT_ABORT ON",
  "SET ROWCOUNT 0",
  "SET TEXTSIZE 2147483647",
  "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"
].join(";\n")

export const begin = (lockTimeoutMs: number): string =>
  [sessionOptions, `SET LOCK_TIMEOUT ${Math.max(1, Math.floor(lockTimeoutMs))}`, "BEGIN TRANSACTION"].join(
    ";\n"
  )

/** Answers with the depth of transactions that the statement left, which is 1. */
export const end = "SELECT @@TRANCOUNT;\nIF @@TRANCOUNT > 0 ROLLBACK TRANSACTION"
