import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as fc from "fast-check"
import { inspect } from "../../src/Policy/TransactSql.js"
import handed from "../cases/policy.mssql.json" with { type: "json" }

interface Case {
  readonly id: string
  readonly sql: string
  readonly expect: string
  readonly refusedAs?: ReadonlyArray<string>
}

const verdict = (sql: string) => Effect.runSync(Effect.either(inspect(sql)))

const reason = (sql: string) => {
  const answer = verdict(sql)
  return Either.isRight(answer) ? "admitted" : answer.left.reason
}

/** Policy reads words; what only the engine can know (an error of its own) is none of its reasons. */
const policyReasons = new Set([
  "read_only",
  "multiple_statements",
  "statement_type",
  "function_denied",
  "unverifiable"
])

describe("handed cases", () => {
  const cases: ReadonlyArray<Case> = handed.cases
  for (const entry of cases)
    it(`${entry.id} ${entry.expect}: ${entry.sql.slice(0, 80)}`, () => {
      if (entry.expect === "admitted") expect(reason(entry.sql)).toBe("admitted")
      else expect(entry.refusedAs?.filter((name) => policyReasons.has(name))).toContain(reason(entry.sql))
    })

  it("binds all of them", () => expect(cases.length).toBeGreaterThan(150))
})

describe("what is no single read", () => {
  const refused: Record<string, ReadonlyArray<string>> = {
    read_only: [
      "select * from items as x (nolock tablock)",
      "select * from items for system_time as of '2020-01-01' (xlock)",
      "select * from (a join b (tablockx) on a.x = b.x)",
      "select * from items with ([tablockx])",
      'select * from items with ("updlock", rowlock)',
      "select * from items ([tablockx])",
      "select * from items with ([xlock] [tablock])",
      "select * from items a join orders b (updlock) on a.id = b.id",
      "select * from items a, orders b (tablockx)",
      "select * from items a join orders b on a.id = b.id, t (tablockx)",
      "select * from items option (table hint (items, xlock))",
      "with change_tracking_context (0x01) delete from orders",
      "delete t",
      "; ; insert t select 1",
      "with x as (select 1 as a) merge t using x on 1 = 1 when matched then delete;",
      "WITH x AS (SELECT 1 AS a), y(b) AS (SELECT a FROM x) UPDATE t SET c = 1 FROM y",
      "with xmlnamespaces ('u' as n) insert t select 1",
      "with x as (select 1 a) select a into t from x",
      "select * from (select 1 a) t into u",
      "select 1e into t",
      "select * from t holdlock",
      "select * from t with (nolock, tablock)",
      "select * from t as a (updlock)",
      "select * from t with (rowlock xlock)",
      "select * from t with (REPEATABLEREAD)",
      "select * from t with (serializable)",
      "bulk insert t from 'f'",
      "backup log d to disk = 'nul'"
    ],
    multiple_statements: [
      "select x\u3164delete t",
      "select x\u115fdelete t",
      "select x\u00aadelete t",
      "select 1 rename object items to x",
      "select top (1) (select 2) (select 3)",
      "select 1 fetch next from f(1)",
      `select 1${";".repeat(50_000)}delete from t`,
      "select 1 select 2",
      "select 1(select 2)",
      "(select 1)(select 2)",
      "(select 1) select 2",
      "select 'a' (select 2)",
      "select 1 x (select 2)",
      "with x as (select 1 a) select a from x with y as (select 1 b) select b from y",
      "select 1 union select 2 select 3",
      "select all 1 select 2",
      "select 1exec('x')",
      "select 1eexec('x')",
      "select 1.5exec('x')",
      "select .5e+3exec('x')",
      "select $exec('x')",
      "select 'x'exec('x')",
      "select [x]exec('x')",
      "select \"x\"exec('x')",
      "select @p1 exec('x')",
      "select 1 as x begin tran",
      "select 1 as x save tran a",
      "select case 1 when 1 then 2 end end conversation 'x'",
      "select 1 end conversation 'x'",
      "select 1 else select 2",
      "select 1 fetch next from c",
      "select 1 as rows fetch first from c",
      "select 1 fetch c",
      "select 1 open c",
      "select 1 close c deallocate c",
      "select 1 use master",
      "select 1 as x use hint",
      "select (1) use master",
      "select 1 set language german",
      "select 1 print 'x'",
      "select 1 raiserror('x', 16, 1)",
      "select 1 waitfor delay '0:0:1'",
      "select 1 declare @x int",
      "select 1 goto x",
      "select 1 dbcc freeproccache",
      "select 1 kill 55",
      "select 1 shutdown",
      "select 1 reconfigure",
      "select 1 checkpoint",
      "select 1 revert",
      "select 1 add signature to p by certificate c",
      "select 1 return",
      "select 1 while 1 = 1 select 2",
      "select 1 disable trigger x on t",
      "select 1 enable trigger all on database",
      "select 1 lineno 5",
      "select 1 merge into t using u on 1 = 1 when matched then delete;",
      "select a receive top (1) * from q",
      "select a receive * from q",
      "select a receive body from q",
      "select 1 send on conversation @h",
      "select 1 get conversation group @g from q",
      "select 1 move conversation @h to @g",
      "select 1 from t order by id offset 0 rows fetch next from c",
      "select 1;;select 2",
      "select 1; x",
      "select 1 /* /* */ */ delete t",
      "select 1\u00a0delete t",
      "select 1\u2003delete t",
      "select 1\u3000delete t",
      "select 1\u200bdelete t",
      "select 1\ufeffdelete t",
      "select 1\u0085delete t",
      "select 1\u0001delete t",
      "select 1😀delete t",
      "select 1—delete t",
      "select 1£delete t",
      "select 1 \uff24\uff25\uff2c\uff25\uff34\uff25 t",
      "select 1 ınsert t select 1"
    ],
    statement_type: [
      "",
      ";",
      "-- nothing",
      "restock 5",
      "[restock] 5",
      "dbo.restock 5",
      '"dbo".restock',
      "@p = restock",
      "label: select 1",
      "values (1)",
      "(delete t)",
      "((restock 5))",
      "go",
      "table t",
      "explain select 1",
      "with x as (select 1 as a) x",
      "print 'x'",
      "if 1 = 1 select 1",
      "throw 50000, 'x', 1",
      "send on conversation @h",
      "select 1 from t for browse",
      "lineno 5 select 1"
    ],
    function_denied: [
      "with x(a) as (select pg_sleep(5)) select * from x",
      "select pg_sleep(a) as x, (1) from t",
      "select ai_summarize(name) from items",
      "select ai_generate_embeddings('x' use model m)",
      "select * from sys.fn_xe_telemetry_blob_target_read_file('x', null, null, null)",
      "select * from sys.fn_dump_dblog_xtp(null, null)",
      "select * from ::fn_trace_gettable('x', 1)",
      "select sys.sp_getapplock_function('r', 'Exclusive', 'Session', 0, 'dbo')",
      "select sp_releaseapplock_function('r')",
      "select * from [openquery]('a', 'b')",
      "select * from sys.openquery_internal('a', 'b')",
      "select ts_stat('delete from x')",
      "select x.pg_sleep from generate_series(1, 2) x",
      "select [s] . [pg_read_file] from string_split('/etc/passwd', ',') s",
      "select * from openxml(1, '/a')",
      "select * from opendatasource('x', 'y').d.s.t",
      "select * from OpenRowset(bulk 'f', single_clob) x",
      "select next /* */ value\nfor dbo.s",
      "select * from sys.[fn_trace_gettable]('f', default)",
      "select * from [sys].\"dm_os_enumerate_filesystem\" ('/', '*')",
      "select * from sys.fn_xe_file_target_read_file('f', null, null, null)",
      "select * from sys.dm_os_file_exists('f')",
      "select pg_sleep(10)",
      "select pg_catalog.set_config('a', 'b', false)",
      "select * from dblink('x', 'y')"
    ],
    unverifiable: [
      "select 1 /* /* */ delete from orders",
      "select 1 /* a /* b */ delete from orders -- x",
      "select 1 \u212aill 5",
      "select x\u2115 from t",
      "select * from items a, srv.db.dbo.t",
      "select * from items a join orders b on a.id = b.id, srv.db.dbo.t",
      "select * from (srv.db.dbo.t cross join items)",
      "select 1 where exists (select 1 from srv.db.dbo.t)",
      "select * from predict(data = srv.db.dbo.t as d) with (x int)",
      "select * from containstable(srv.db.dbo.t, *, 'x')",
      "select * from srv.db.dbo.t",
      "select * from srv...t",
      "select * from srv.db.dbo.t (nolock)",
      "select * from srv.db..t(index (1))",
      "select * from [srv].db..[t]",
      "select * from srv . db . dbo . t",
      "select 1 x:",
      "select {call restock}",
      "select 1 -- x\rdelete t",
      "select 1 -- x\u2028delete t",
      "select 1 -- x\u000cdelete t",
      "select 1\u0000",
      "\uff33\uff25\uff2c\uff25\uff23\uff34 1",
      "\u017felect 1"
    ]
  }
  for (const [expected, texts] of Object.entries(refused))
    for (const sql of texts)
      it(`${expected}: ${JSON.stringify(sql)}`, () => {
        expect(reason(sql)).toBe(expected)
      })
})

describe("reads", () => {
  const admitted = [
    "with sp_totals(a, [b]) as (select 1, 2), pg_size(c) as (select 3) select * from sp_totals, pg_size",
    "select * from a join b on f(a.xlock) = (b.tablock) where f(tablock) = 1 order by max(xlock)",
    "select a.x from d.s.a as a left join d.s.b on a.x = d.s.b.x and d.s.b.y = 1 where d.s.b.y is null",
    "select case when d.s.t.c = 1 then max(d.s.t.e) end from d.s.t group by d.s.t.c",
    "select top ((select 5)) id from t order by id",
    "select 0x, 1e, 1.e5, $, $5, £5, €5",
    "select (select a from b for xml path(''), type).value('.', 'nvarchar(max)') as x",
    "select rename, object, copy, label, message, timeout, dialog, queue from t",
    "select top (5) (select max(total) from orders) as m, id from items",
    "select top 5 (select 1) as x from items",
    "select distinct top (@p1) percent with ties (select 1) as x from items order by id",
    "select top @p1 (select 1) from t",
    "select top (select top (1) (select (2))) (select 3) from t",
    "select d.dbo.t.id, d.dbo.t.* from d.dbo.t where d.dbo.t.qty > 0 order by d.dbo.t.id",
    "select i.id from d.dbo.items as i join d.dbo.orders on d.dbo.orders.item_id = i.id",
    "select * from t order by id offset 0 rows fetch next cast(@p1 as int) rows only",
    "select count(serializable), max(updlock) from settings",
    "with x as (select id, tablock from settings) select * from x",
    "select * from (select snapshot, serializable from s) x",
    "with x(xlock) as (select 1) select avg(x.xlock) from x",
    "select * from openjson(@p1) with (id int '$.id', [xlock] nvarchar(10), [set] nvarchar(max) as json)",
    "select t.receive r, t.[send] s from t",
    "select * from t where a like 'x!%' {escape '!'}",
    "select 1 as N\u00ba, 2 as \u4f50\u3005\u6728, 3 as \u0939\u093f\u0928\u094d\u0926\u0940, 4 as Set\u00fabal",
    "select * from ai_generate_chunks(source = 'abc', chunk_type = fixed, chunk_size = 10)",
    "select dbo.sp_length('x'), t.pg_no from t",
    "select p.name from person p, friend f, person q where match(p-(f)->q)",
    "select string_agg(q.name, '') within group (graph path) from person p, friend for path f, person for path q where match(shortest_path(p(-(f)->q)+))",
    "select * from changetable(changes items, 0) as c",
    "select $node_id, $partition.pf(1) from person",
    "select * from items for system_time from '2020-01-01' to '2021-01-01' as h",
    "select id from items option (table hint (items, nolock), maxrecursion 0, querytraceon 9481)",
    "select 1",
    "SELECT\u00a01",
    "select 1 -- x\r\n, 2",
    "select 1 -- x\r",
    "select 1;;;",
    "select 'delete' delete_me, [delete], \"drop\" from [create]",
    "select json_object('a': 1, 'b': (select 2))",
    "select geometry::Point(1, 2, 0).STAsText()",
    "select dbo.t.col.value('(/a)[1]', 'int') from dbo.t",
    "select a.b.c.d.ToString() from x",
    "select * from db.dbo.t as x join db..u y on x.id = y.id",
    "select row_number() over (order by (select null)) n from t",
    "select * from t where a in ((select 1), (select 2)) and b >= all (select c from u)",
    "select -(select 1), 1 + (select 2), case when (select 1) = 1 then (select 2) else (select 3) end",
    "select top (select 1) * from t order by 1 offset (select 0) rows fetch next (select 1) rows only",
    "select * from t order by 1 offset @p1 rows fetch first @p2 row only",
    "(select 1) union (select 2) except ((select 3) intersect select 4)",
    "with x as ((select 1 a) union all (select 2)) (select a from x)",
    "with x(a, b) as (select 1, 2), [y] as (select 3 as c) select * from x, y",
    "with xmlnamespaces ('u' as n), x as (select 1 a) select * from x for xml path('r')",
    "select * from t option (merge union, use plan N'<p/>', optimize for (@p1 = 1))",
    "select a.id from a left outer merge join b on a.id = b.id",
    "select * from t with (nolock, index(ix), forceseek, readpast)",
    "select * from t for system_time as of '2024-01-01'",
    "select {d '2024-01-01'}, {fn now()}",
    "select receive, send, throw, disable, [get] from t",
    "select receive * 2 from t",
    "select t.receive from t",
    "select case when 1 = 1 then case 2 when 2 then 3 end else 4 end x",
    "select @@version, @@rowcount",
    "select iif(1 = 1, 2, 3), choose(1, 'a')",
    "select string_agg(n, ',') within group (order by n) from t",
    "select sum(a) over w from t window w as (partition by b)",
    "select * from t tablesample (10 percent)",
    "select 'it''s', N'ü', \"a\"\"b\", [a]]b]",
    // The engine says what is wrong with these.
    "select from where",
    "select N'abc",
    "select (1",
    "select 1 /* never closed",
    "select [never closed",
    "with x as (select 1"
  ]
  for (const sql of admitted) it(sql, () => expect(reason(sql)).toBe("admitted"))
})

describe("for every text", () => {
  const piece = fc.constantFrom(
    "select ",
    "1",
    " ",
    "'",
    "''",
    '"',
    "[",
    "]",
    "]]",
    "--",
    "\n",
    "\r",
    "/*",
    "*/",
    "(",
    ")",
    ",",
    ";",
    ".",
    "x",
    "N'",
    "from t ",
    "union ",
    "case ",
    "end ",
    "1e",
    "0x",
    "$",
    "@p1",
    "as ",
    "\\",
    "{",
    ":",
    "\u00a0",
    "é",
    "1."
  )
  const noise = fc.array(piece, { maxLength: 12 }).map((parts) => parts.join(""))

  it("a write that ends the text is seen, or quoted or commented away", () => {
    fc.assert(
      fc.property(noise, (text) => {
        const sql = `select 1 ${text} delete from t`
        if (reason(sql) !== "admitted") return true
        // Then the writing words lie in something that was never closed, or closed after them.
        return reason(`${sql}\n'`) !== "admitted" || /['"[\]]|\/\*|--/.test(text)
      }),
      { numRuns: 3000 }
    )
  })

  it("a text without quotes and comments never admits a writing word", () => {
    const plain = noise.map((text) => text.replaceAll(/['"[\]]|--|\/\*|\*\//g, " "))
    fc.assert(
      fc.property(plain, plain, (before, after) => {
        expect(reason(`select 1 ${before} delete ${after}`)).not.toBe("admitted")
        expect(reason(`select 1 ${before}\u00a0EXEC('x')${after}`)).not.toBe("admitted")
      }),
      { numRuns: 3000 }
    )
  })

  it("never throws", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 60 }), (sql) => {
        reason(sql)
        reason(`select ${sql}`)
      }),
      { numRuns: 2000 }
    )
  })
})
