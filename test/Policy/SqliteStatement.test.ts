import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as fc from "fast-check"
import Driver from "../../src/Adapter/Sqlite/Driver.js"
import { inspect } from "../../src/Policy/SqliteStatement.js"
import handed from "../cases/policy.sqlite.json" with { type: "json" }

const reason = (sql: string): string => {
  const verdict = Effect.runSync(Effect.either(inspect(sql)))
  return Either.isRight(verdict) ? "admitted" : verdict.left.reason
}

describe("handed cases", () => {
  const admitted = handed.cases.filter(({ expect }) => expect === "admitted")
  it.each(admitted.map(({ id, sql }) => [id, sql]))("%s admits %s", (_, sql) =>
    expect(reason(sql)).toBe("admitted")
  )

  // What the engine itself refuses may pass here.
  const refused = handed.cases.filter(({ expect }) => expect === "refused")
  it.each(refused.map((entry) => [entry.id, entry] as const))("%s", (_, { refusedAs, sql }) =>
    expect(["admitted", ...(refusedAs ?? [])]).toContain(reason(sql))
  )
})

const table: Record<string, ReadonlyArray<string>> = {
  admitted: [
    "",
    "-- nothing",
    ";",
    "select 1",
    "SELECT 1;",
    ";;select 1;; -- end",
    "values (1), (2)",
    "with x as (select 1) select * from x",
    "explain query plan select 1",
    "explain select 1",
    "explain query plan with x as (select 1) select * from x",
    "explain pragma table_info(t)",
    "select a from t where b in ('csv', 'fsdir') or b = 'pragma_optimize'",
    "pragma table_info(t)",
    "pragma table_info = t",
    "PRAGMA main . index_list ( 't' )",
    "pragma user_version",
    "pragma journal_mode",
    "pragma integrity_check(5)",
    "select * from pragma_table_info('t')",
    "select * from pragma_database_list",
    "select * from pragma_function_list()",
    "select 'delete from t; drop table t'",
    'select "optimize", [load_extension], `edit`',
    "select optimize from t",
    "select replace(a, 'x', 'y'), glob('a', b) from t",
    "select 'load_extension(1)' as a",
    // Tables, sheets and common table expressions may be called like what is denied elsewhere.
    "select * from csv",
    "select zipfile.a from zipfile join fsdir on 1",
    "select * from pragma_sales where arg = 1",
    "with optimize(a, b) as (select 1, 2), edit(c) as not materialized (select 3) select * from optimize, edit",
    "nonsense here",
    "42"
  ],
  read_only: [
    "insert into t values (1)",
    "REPLACE into t values (1)",
    "update t set a = 1",
    "delete from t",
    "create table t (a)",
    "drop table t",
    "alter table t add b",
    "/* select */ delete from t",
    "-- select\ninsert into t values (1)",
    ";delete from t",
    "pragma user_version = 1",
    "pragma user_version(1)",
    "pragma/**/main./**/user_version/**/=/**/1",
    "pragma journal_mode('wal')",
    "pragma foreign_keys = off",
    // A PRAGMA acts while it is prepared, explained or not.
    "explain pragma foreign_keys = off",
    "EXPLAIN QUERY PLAN pragma case_sensitive_like(1)",
    "explain/* */query -- x\nplan pragma main.user_version = 1",
    "explain delete from t",
    "explain query plan insert into t values (1)",
    "pragma optimize(1)"
  ],
  statement_type: [
    "vacuum",
    "explain vacuum",
    "explain attach ':memory:' as x",
    "explain pragma optimize",
    "vacuum into 'x'",
    "attach 'x' as x",
    "detach x",
    "begin",
    "commit",
    "end",
    "rollback",
    "savepoint a",
    "release a",
    "analyze",
    "reindex",
    "pragma optimize",
    "pragma incremental_vacuum",
    "pragma wal_checkpoint",
    "pragma nosuch"
  ],
  multiple_statements: [
    "select 1; select 2",
    "select ';'; delete from t",
    "select 1;; delete from t",
    "select 1 /* /* */; select 2 -- */",
    "select 1 --/*\n; select 2 --*/",
    "select 1 as [']; delete from t; --']",
    "select '\\'; delete from t; --'",
    "explain select 1; delete from t"
  ],
  function_denied: [
    "select load_extension('x')",
    "select LOAD_EXTENSION ('x')",
    "select \"load_extension\"('x')",
    "select [load_extension]('x')",
    "select load_extension/* */('x')",
    "select 'load_extension'('x')",
    "select optimize(t) from t",
    "select writefile('x', 'y')",
    "select readfile('x')",
    "select edit('x')",
    "select fts3_tokenizer('x')",
    "select * from pragma_optimize",
    "select * from pragma_optimize(1)",
    "select * from pragma_user_version(1)",
    "select * from pragma_journal_mode('wal')",
    "select * from pragma_user_version where arg = 1",
    "select * from (select * from pragma_wal_checkpoint)",
    "with x as (select * from PRAGMA_optimize) select * from x",
    'select * from "pragma_optimize"',
    "select * from main.pragma_optimize",
    "select * from 'pragma_optimize'",
    "select * from main.'pragma_optimize'",
    "select * from t, 'pragma_optimize'",
    "explain select * from pragma_optimize",
    "select * from sqlite_dbpage",
    "select * from t, sqlite_dbpage",
    "select * from t join main.sqlite_dbpage",
    "select (select 1 from fsdir('.'))",
    "select * from zipfile('x.zip')",
    "with a(b) as (select edit('x')) select * from a",
    "select load_extension('x') as materialized",
    "select load_extension((with x(a) as (select 'x') select a from x))",
    "select load_extension(a, (with x(a) as (select 'x') select a from x)) from t",
    "select load_extension('x') as not_a_cte, (1)",
    "select * from pragma_case_sensitive_like",
    "explain query plan select load_extension('x')"
  ]
}

describe("the policy", () => {
  for (const [expected, statements] of Object.entries(table))
    it.each(statements)(`${expected}: %s`, (sql) => expect(reason(sql)).toBe(expected))
})

describe("the PRAGMAs of the driver", () => {
  const database = new Driver(":memory:")
  const names = database.prepare<[], string>("select name from pragma_pragma_list").pluck().all()
  database.close()

  it.each(names)("%s sets nothing through its table", (name) => {
    const describes = reason(`pragma ${name}(t)`) === "admitted"
    expect(reason(`select * from pragma_${name}(1)`)).toBe(describes ? "admitted" : "function_denied")
    expect(reason(`select * from pragma_${name} where arg = 1`)).toBe(
      describes ? "admitted" : "function_denied"
    )
  })
})

describe("for every text", () => {
  const space = fc.constantFrom(" ", "\n", "\t", " /* x */ ", " -- x\n", "/**/")
  const letters = (word: string) =>
    fc
      .array(fc.boolean(), { minLength: word.length, maxLength: word.length })
      .map((upper) => [...word].map((c, i) => (upper[i] ? c.toUpperCase() : c)).join(""))
  const verbs = [
    "insert",
    "replace",
    "update",
    "delete",
    "create",
    "drop",
    "alter",
    "attach",
    "vacuum",
    "begin"
  ]

  it("a writing verb in front is refused, however it is spelt and spaced", () => {
    const statement = fc.tuple(fc.array(space), fc.constantFrom(...verbs).chain(letters), space, fc.string())
    fc.assert(
      fc.property(statement, ([before, verb, after, rest]) => {
        expect(reason(`${before.join("")}${verb}${after}${rest}`)).not.toBe("admitted")
      })
    )
  })

  it("a second statement is refused, unless it is quoted or commented away", () => {
    const inside = fc.string({
      unit: fc.constantFrom("a", " ", ";", "\\", "-", "/", "*", "[", "]", "`", '"', "\n")
    })
    fc.assert(
      fc.property(inside, (text) => {
        expect(reason(`select '${text}'; delete from t`)).toBe("multiple_statements")
        expect(reason(`select '${text}; delete from t'`)).toBe("admitted")
        expect(reason(`select 1 /*${text.replaceAll("*/", "")} */; delete from t`)).toBe(
          "multiple_statements"
        )
        expect(reason(`select 1 --${text.replaceAll("\n", "")}\n; delete from t`)).toBe("multiple_statements")
      })
    )
  })

  it("a denied function is seen in any quoting", () => {
    const name = fc.constantFrom("load_extension", "optimize", "readfile", "writefile", "edit").chain(letters)
    const quote = fc.constantFrom<(name: string) => string>(
      (text) => text,
      (text) => `"${text}"`,
      (text) => `[${text}]`,
      (text) => `\`${text}\``
    )
    fc.assert(
      fc.property(name, quote, fc.array(space), (name, quoted, gap) => {
        expect(reason(`select 1, ${quoted(name)}${gap.join("")}(a) from t`)).toBe("function_denied")
      })
    )
  })

  it("never throws", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (sql) => void expect(typeof reason(sql)).toBe("string"))
    )
  })
})
