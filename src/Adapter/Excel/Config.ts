/** What a workbook or a file of delimited text needs to be named with. No driver is imported here. */
import * as Schema from "effect/Schema"

export class Config extends Schema.Class<Config>("ExcelConfig")({
  /** Path of the file. It is only ever read. */
  file: Schema.NonEmptyString,
  /** `excel`: a workbook (`.xlsx`, `.xlsm`, `.xltx`). `csv`: delimited text (`.csv`, `.tsv`). */
  engine: Schema.optionalWith(Schema.Literal("excel", "csv"), { default: () => "excel" as const })
}) {}

/** The first message to the child of a file. */
export interface ExcelSetup {
  readonly file: string
  readonly engine: "excel" | "csv"
  /** Bound of what the tables may take, in bytes. */
  readonly maxTableBytes: number
}
