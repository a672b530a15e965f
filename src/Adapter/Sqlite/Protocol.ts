/** The messages between the adapter and its child process. */
import type { Parameter } from "../../Adapter.js"
import type { RowLimits, RowSet } from "../../Rows.js"

/** The first message to the child of a database file. */
export interface SqliteSetup {
  readonly file: string
}

export interface StatementRequest {
  readonly id: number
  /** `catalog` statements are this project's own; they answer within wider limits. */
  readonly kind: "query" | "explain" | "catalog"
  readonly sql: string
  /** Bytes only in a program's own statements. */
  readonly params: ReadonlyArray<Parameter | Uint8Array>
  readonly limits: RowLimits
  /** Until when the engine may wait for a lock, in milliseconds since 1970. */
  readonly lockDeadline: number
}

/** The driver's error in plain form, and where it was met. */
export interface Refusal {
  readonly stage: "open" | "prepare" | "bind" | "run"
  /** SQLite's extended result code, a file system code, or one of this program's own. */
  readonly code: string
  readonly message: string
  /** Character offset in the statement, from 0. */
  readonly offset?: number
}

export type Reply =
  | { readonly id: number; readonly ok: true; readonly rows: RowSet }
  | { readonly id: number; readonly ok: false; readonly refusal: Refusal }
