/** The suite of all adapters, bound to a workbook. */
import { join } from "node:path"
import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { Scope } from "effect/Scope"
import * as Excel from "../../../src/Adapter/Excel.js"
import { folder } from "../../support/Folder.js"
import { childrenOf, isBusy, killAndWait } from "../../support/Process.js"
import { adapterContract, type Subject } from "../AdapterContract.js"
import { writeParts } from "./Books.js"
import { rowsXml } from "./Parts.js"

const place = folder()
const file = writeParts(join(place, "contract.xlsx"), { sheets: { t: rowsXml(["id", "name"], [1, "a"]) } })

const adapterOf = (path: string) => Excel.make(new Excel.Config({ file: path }))

const subject: Effect.Effect<Subject, never, Scope> = Effect.map(adapterOf(file), (adapter) => ({
  adapter,
  isRunning: Effect.sync(() => childrenOf(process.pid).some(isBusy)),
  cutConnections: Effect.promise(() => killAndWait(childrenOf(process.pid)))
}))

adapterContract(it.scopedLive, {
  name: "Excel",
  subject,
  atOnce: 1,
  unreachable: { reason: "file_not_found", subject: adapterOf(join(place, "missing.xlsx")) },
  statements: {
    one: "select 1",
    noRows: "select id, name from t where 0",
    named: (names) =>
      `select ${names.map((name, index) => `${index + 1} as "${name.replaceAll('"', '""')}"`).join(", ")}`,
    numbers: (n) =>
      `with recursive c(i) as (values (1) union all select i + 1 from c where i < ${n}) select i from c`,
    endless: "with recursive c(i) as (values (1) union all select i + 1 from c) select i from c",
    endlessText:
      "with recursive c(i) as (values (1) union all select i + 1 from c) select hex(zeroblob(500)) as t from c",
    text: (n) => `select substr(replace(hex(zeroblob(${n})), '0', 'x'), 1, ${n}) as t`,
    runaway: "with recursive c(i) as (select id from t union all select i + 1 from c) select count(*) from c",
    echo: "select ? as a, ? as b",
    write: "insert into t values (2, 'b')",
    yes: "1",
    bytes: "x'0102ff'"
  },
  values: [
    { what: "a sheet", sql: "select * from t", columnTypes: ["INTEGER", "TEXT"], rows: [[1, "a"]] },
    {
      what: "parameters by number, a boolean and null among them",
      sql: "select ?2, ?1, ?3 from t where id = ?1",
      params: [true, null, 1.5],
      rows: [[null, 1, 1.5]]
    }
  ],
  errors: [
    { sql: "select from where", category: "QueryFailed", reason: "syntax", code: "SQLITE_ERROR" },
    { sql: "select * from nosuch", category: "QueryFailed", reason: "unknown_table", code: "SQLITE_ERROR" },
    { sql: "select nosuch from t", category: "QueryFailed", reason: "unknown_column", code: "SQLITE_ERROR" },
    {
      sql: "select nosuch(1) from t",
      category: "QueryFailed",
      reason: "unknown_function",
      code: "SQLITE_ERROR"
    },
    { sql: "select id from t a, t b", category: "QueryFailed", reason: "ambiguous_name" },
    { sql: "select ? from t", category: "QueryFailed", reason: "parameters" },
    { sql: "select :a from t", params: [1], category: "QueryFailed", reason: "parameters" },
    { sql: "select 1 from t; select 2", category: "QueryRejected", reason: "multiple_statements" },
    { sql: "drop table t", category: "QueryRejected", reason: "read_only" },
    { sql: "delete from t", category: "QueryRejected", reason: "read_only" },
    { sql: "", category: "QueryFailed", reason: "syntax" },
    { sql: "select 1\u0000", category: "QueryFailed", reason: "syntax" }
  ]
})
