import { makeCompilerSqlite } from "@effect/sql/Statement"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { make, type Table } from "../../src/Adapter/ReadClient.js"

const table: Table = { columns: ["a"], rows: [[1]], truncatedBy: null, truncatedCells: [] }

const ask = (answer: Table) =>
  Effect.flatMap(
    make({ compiler: makeCompilerSqlite(), system: "none", run: () => Effect.succeed(answer) }),
    (sql) => sql`select a`
  )

describe("a client over an adapter", () => {
  it.scoped("answers with what is whole", () =>
    Effect.map(ask(table), (rows) => expect(rows).toEqual([{ a: 1 }]))
  )

  it.scoped.each<Partial<Table>>([
    { truncatedBy: "max_rows" },
    { truncatedBy: "max_bytes" },
    { truncatedCells: [{ row: 0, column: "a", bytes: 9 }] }
  ])("fails where something was cut: %j", (cut) =>
    Effect.map(Effect.flip(ask({ ...table, ...cut })), ({ cause }) =>
      expect(cause).toMatchObject({ _tag: "QueryFailed", reason: "resource_limit" })
    )
  )
})
