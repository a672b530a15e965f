import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { admit } from "../../src/Policy.js"

interface PolicyCase {
  readonly id: string
  readonly sql: string
  readonly expect: "refused" | "admitted" | "contained"
  readonly refusedAs?: ReadonlyArray<string>
}
const { cases }: { cases: ReadonlyArray<PolicyCase> } = JSON.parse(
  readFileSync(new URL("../cases/policy.postgres.json", import.meta.url), "utf8")
)

const verdict = (sql: string) =>
  admit("postgres", { sql, params: [] }).pipe(
    Effect.match({ onSuccess: ({ mode }) => mode as string, onFailure: ({ reason }) => reason as string })
  )

/** What the engine stops where the grammar cannot see it; the integration tests hold the engine to it. */
const byTheEngine = (entry: PolicyCase) => entry.refusedAs?.includes("read_only") === true

describe("PostgresGrammar", () => {
  describe("handed cases", () => {
    for (const entry of cases) {
      it.effect(`${entry.id} ${entry.expect}: ${entry.sql.slice(0, 70)}`, () =>
        Effect.map(verdict(entry.sql), (found) => {
          if (entry.expect === "admitted") expect(found).toBe("execute")
          else if (found === "execute") expect(byTheEngine(entry)).toBe(true)
          else
            expect(found === "prepare_only" ? "unverifiable" : found).toBeOneOf([...(entry.refusedAs ?? [])])
        })
      )
    }
  })

  const each = (title: string, wanted: string, statements: ReadonlyArray<string>) =>
    describe(title, () => {
      for (const sql of statements) {
        it.effect(sql.slice(0, 90), () => Effect.map(verdict(sql), (found) => expect(found).toBe(wanted)))
      }
    })

  each("functions wherever they stand", "function_denied", [
    "select a from t group by a having pg_notify('a', 'b') is null",
    "select count(*) filter (where pg_try_advisory_lock(1)) from t",
    "select sum(x) over (partition by pg_notify('a', x::text)) from t",
    "select array(select lo_creat(-1))",
    "select * from t join u on pg_advisory_lock(t.id) is null",
    "select * from t tablesample bernoulli (setseed(0.1)::text::real)",
    "with a as materialized (select pg_terminate_backend(1)) select 1",
    "select case when true then pg_reload_conf() end",
    "select (pg_stat_file('x')).size",
    "select xmlelement(name a, xmlattributes(pg_read_file('x') as b))",
    "select * from xmltable('/a' passing (pg_read_file('x')::xml) columns b int)",
    "select json_object('a': nextval('s'))",
    "select * from json_table(pg_read_file('x')::jsonb, '$' columns (a int path '$'))",
    "select string_agg(x, ',' order by lo_import(x)) from t",
    "select percentile_cont(setseed(1)::text::float8) within group (order by a) from t",
    "select 1 limit pg_advisory_lock(1)::text::int",
    "values (pg_catalog.set_config('a', 'b', true))",
    "table t offset pg_switch_wal()::text::int",
    "select \"pg_notify\"('a', 'b')",
    "select anything.dblink('a', 'b')",
    "explain select nextval('s')",
    "explain (analyze, format json) select pg_cancel_backend(1)",
    "select 1 union all (select 2 order by pg_promote()::int)",
    "select row(pg_rotate_logfile())",
    "select array[lo_put(1, 0, '')]",
    "select coalesce(null, pg_try_advisory_xact_lock(1))",
    "select greatest(1, pg_create_restore_point('x')::text::int)",
    "select set_config(variadic array['a','b'])",
    "select ts_rewrite('a'::tsquery, 'select 1')",
    "select * from crosstab('select 1, 2, 3') as t(a int, b int)",
    "select * from connectby('t', 'a', 'b', '1', 0) as t(a int)",
    "select cursor_to_xml('c', 1, true, false, '')",
    "select cron.schedule('* * * * *', 'delete from t')",
    "select txid_current()",
    "select 1 where pg_current_xact_id() is not null",
    "select isn_weak(true)",
    "select bt_index_parent_check('i')",
    "select pg_stat_force_next_flush()",
    "select * from pg_hba_file_rules",
    "select * from pg_catalog.pg_file_settings"
  ])

  each("functions written as columns", "function_denied", [
    "select (5::bigint).pg_advisory_lock",
    "select ('s'::regclass).nextval from t",
    'select (array[5])[1]."pg_terminate_backend"',
    "select t.pg_terminate_backend from unnest(array[0]) t",
    "select (t.t).pg_cancel_backend from unnest(array[0]) t",
    'select 1 from lateral unnest(array[0]) as t(a) order by t.U&"pg\\005fterminate_backend"',
    "select unnest.pg_terminate_backend from unnest(array[0])",
    "select coalesce.pg_terminate_backend from coalesce(0)",
    "select t.pg_read_file from rows from (unnest(array['x'])) t where exists (select t.pg_ls_dir from (select 1 as pg_ls_dir) u)",
    "select t.lo_import from unnest(array['/x']) t, (select 1 as lo_import) u",
    "with x as (select t.pg_create_restore_point from unnest(array['x']) t) select 1"
  ])

  each("reads", "execute", [
    "select s.nextval, s.pg_notify from (select 1 as nextval, 2 as pg_notify) s",
    "select l.lo_revenue, (l).lo_discount, l.https from lineorder l, generate_series(1, 2) l2",
    "select x.nextval, x.setseed from jsonb_to_recordset('[]') as x(nextval int, setseed int)",
    "select x.pg_read_file from unnest(array[1]) as x(pg_read_file)",
    "select (r).a, (r).b[1].c, t.* from t, unnest(array[1]) u",
    "select lo_get(1), pg_sleep(0), currval('s'), lastval()",
    "select pg_stat_get_db_stat_reset_time(1), pg_backend_pid(), pg_is_in_recovery()",
    "select pg_stat_get_backend_pid(1), pg_relation_filenode('t'), pg_conf_load_time()",
    "select ts_rewrite('a & b'::tsquery, 'a'::tsquery, 'c'::tsquery)",
    "select pg_replication_origin_progress('x', false)",
    "select txid_current_if_assigned(), txid_current_snapshot(), pg_current_snapshot(), pg_current_xact_id_if_assigned()",
    "select isn_weak(), bt_index_check('i')",
    "select * from pg_listening_channels()",
    "select pg_hba_file_rules.a from (select 1 as a) pg_hba_file_rules",
    "select * from mine.pg_file_settings",
    "select nextval from t where setval > 1",
    'select "SET_CONFIG"(1)',
    "show all",
    "show transaction isolation level",
    "explain verbose values (1)",
    "explain (generic_plan) select $1",
    "select 1;;;"
  ])

  each("writes in any part", "read_only", [
    "merge into t using u on true when matched then delete",
    "with a as (with b as (insert into t values (1) returning 1) select * from b) select * from a",
    "select 1 union select 2 into t",
    "select * from (select * from t for share) s",
    "select * from t for key share of t skip locked",
    "explain delete from t",
    "explain analyze create materialized view v as select 1",
    "explain (analyze) refresh materialized view v",
    "create index concurrently i on t (a)",
    "drop function f(int)",
    "revoke all on t from public",
    "alter table t add a int",
    "copy (insert into t values (1) returning 1) to stdout",
    "refresh materialized view v",
    "security label on table t is 'x'",
    "import foreign schema s from server x into y",
    "reassign owned by a to b"
  ])

  each("statements that are no reads", "statement_type", [
    "",
    " ; -- nothing",
    "load 'x'",
    "discard all",
    "fetch all from c",
    "close c",
    "move 1 in c",
    "deallocate all",
    "cluster t",
    "explain execute p",
    "explain declare c cursor for select 1",
    "savepoint a",
    "set constraints all deferred",
    "call p()"
  ])

  each("what this grammar cannot read is left to the engine's parser", "prepare_only", [
    "selec 1",
    "select 'open",
    "delete form t",
    `select ${"(".repeat(20_000)}1${")".repeat(20_000)}`
  ])

  each(
    "comments in an unbroken row, for which the scanner takes the square of their length",
    "unverifiable",
    [`select 1 ${"/**/".repeat(24_000)}`, `select 1 ${"/*".repeat(49_000)}`]
  )

  each("signs in an unbroken row, each of which the scanner sees again and again", "unverifiable", [
    `select 1 ${"+-".repeat(49_000)}1`,
    `select 1 ${"+".repeat(90_000)}1`,
    `select 1 <${"+-".repeat(40_000)}--`
  ])

  each("other long rows", "execute", [
    `select 1 ${"+ -".repeat(1000)}1`,
    `select 1 ${"-".repeat(99_000)}`,
    `select 1 /*${"+-".repeat(1000)}*/`,
    `select 1 /* ${"-".repeat(90_000)} */`,
    `select '${"+-".repeat(1000)}'`,
    `select 1 ${"/**/ ".repeat(19_000)}`,
    `select 1 /${"*".repeat(90_000)}/`,
    `select 1 --${"/*".repeat(1000)}`,
    `select '${"/*".repeat(1000)}'`
  ])

  it.effect("a NUL character is refused", () =>
    Effect.map(verdict("select 1\0; delete from t"), (found) => expect(found).toBe("unverifiable"))
  )

  it.effect("a statement that exhausts the parser's stack does not harm the next one", () =>
    Effect.gen(function* () {
      const deep = `select 1${"+1".repeat(49_000)}`
      for (let i = 0; i < 3; i++) {
        expect(yield* verdict(deep)).toBe("prepare_only")
        expect(yield* verdict("select 1; select 2")).toBe("multiple_statements")
        expect(yield* verdict("select f(1) from t")).toBe("execute")
      }
    })
  )

  it.effect("the message names the rule and what to do instead", () =>
    Effect.gen(function* () {
      const { message } = yield* Effect.flip(admit("postgres", { sql: "select nextval('s')", params: [] }))
      expect(message).toContain("nextval")
      expect(message).toContain("last_value")
    })
  )
})
