/**
 * What holds for every adapter, whatever its engine: one suite, bound to an engine by describing it. Everything goes
 * through Policy and the port, as a call does; nothing here knows a driver.
 */
import { afterAll, describe, expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/TestClock"
import * as TestContext from "effect/TestContext"
import * as TestServices from "effect/TestServices"
import {
  type AdapterService,
  type CallLimits,
  catalogLimits,
  type Parameter,
  type Statement
} from "../../src/Adapter.js"
import * as Policy from "../../src/Policy.js"
import type { AdapterFailure } from "../../src/QueryError.js"
import type { RowSet } from "../../src/Rows.js"

/** An adapter under test, and hands outside of it. */
export interface Subject {
  /** Able to run at least three statements at once, where the engine can. Nobody else uses it. */
  readonly adapter: AdapterService
  /**
   * Whether the engine itself is running `statements.runaway` now: asked on a connection (a lock, a process) of the
   * test's own.
   */
  readonly isRunning: Effect.Effect<boolean>
  /** Ends all connections (or processes) that the adapter holds, from outside. */
  readonly cutConnections: Effect.Effect<void>
}

export interface ValueExample {
  readonly what: string
  readonly sql: string
  readonly params?: ReadonlyArray<Parameter>
  readonly columnTypes?: ReadonlyArray<string | null>
  readonly rows: ReadonlyArray<ReadonlyArray<unknown>>
}

export interface ErrorExample {
  readonly sql: string
  readonly params?: ReadonlyArray<Parameter>
  readonly category: AdapterFailure["_tag"]
  readonly reason: AdapterFailure["reason"]
  /** Absent where the server refuses before the engine is asked. */
  readonly code?: string
}

/** An engine, described for the suite: statements are in its own dialect. */
export interface EngineUnderTest<E, R> {
  readonly name: string
  /** A new adapter each time; it ends with the scope. */
  readonly subject: Effect.Effect<Subject, E, Scope.Scope | R>
  /** How many statements it runs at once by its nature; absent: as many as it is set to. */
  readonly atOnce?: 1
  /** An adapter whose data source does not exist (or refuses), and the reason that it is to give. */
  readonly unreachable: {
    readonly reason: AdapterFailure["reason"]
    readonly subject: Effect.Effect<AdapterService, E, Scope.Scope | R>
  }
  readonly statements: {
    /** One row with the number 1. */
    readonly one: string
    /** No rows; two columns called `id` and `name`. */
    readonly noRows: string
    /** One row of the numbers 1, 2, 3, … in columns that have these names; an empty name is a column without one. */
    readonly named: (names: ReadonlyArray<string>) => string
    /** One column with the numbers 1 to `n`, in order. */
    readonly numbers: (n: number) => string
    /** Rows without end: the numbers 1, 2, 3, … */
    readonly endless: string
    /** Rows without end: a text of 1,000 bytes each. */
    readonly endlessText: string
    /** One text of `n` letters x. */
    readonly text: (n: number) => string
    /** Runs until it is stopped, without giving a row. */
    readonly runaway: string
    /** Gives its two parameters, a text and a number, back as one row. */
    readonly echo: string
    /** Would change data. */
    readonly write: string
    /** What a true boolean is, and the bytes 1, 2, 255. */
    readonly yes: string
    readonly bytes: string
  }
  readonly values: ReadonlyArray<ValueExample>
  readonly errors: ReadonlyArray<ErrorExample>
  /** Names that a column cannot have in this engine. */
  readonly impossibleNames?: ReadonlyArray<string>
}

/** How a test of the suite is registered: `it.scopedLive`, or `it.scoped` of a `layer` without test services. */
export type Register<R> = <A, E>(name: string, test: () => Effect.Effect<A, E, Scope.Scope | R>) => void

const limits: CallLimits = {
  maxRows: 1000,
  maxBytes: 100_000,
  maxCellBytes: 16_384,
  timeoutMs: 30_000,
  format: "columnar"
}

/** Runs a statement as a call does: admitted first. */
export const ask = (
  adapter: AdapterService,
  statement: string | Partial<Statement>,
  changed: Partial<CallLimits> = {}
): Effect.Effect<RowSet, AdapterFailure> => {
  const { params = [], sql = "" } = typeof statement === "string" ? { sql: statement } : statement
  return Effect.flatMap(Policy.admit(adapter.engine, { sql, params }), (query) =>
    adapter.query(query, { ...limits, ...changed })
  )
}

/** Waits until `condition` holds. */
const until = (condition: Effect.Effect<boolean>): Effect.Effect<void> =>
  Effect.asVoid(
    Effect.repeat(Effect.zipRight(Effect.sleep("5 millis"), condition), { until: (holds) => holds })
  )

const rowBytes = (rows: ReadonlyArray<ReadonlyArray<unknown>>) => Buffer.byteLength(JSON.stringify(rows))

/** Registers the suite for one engine. */
export const adapterContract = <E, R>(test: Register<R>, engine: EngineUnderTest<E, R>): void => {
  const { statements } = engine

  const stillAnswers = ({ adapter }: Subject) =>
    Effect.map(ask(adapter, statements.one), ({ rows }) => expect(rows).toEqual([[1]]))

  /** A test on an adapter of its own, which must still answer at its end. */
  const alone = (name: string, body: (subject: Subject) => Effect.Effect<void, unknown>) =>
    test(name, () =>
      Effect.gen(function* () {
        const subject = yield* engine.subject
        yield* body(subject)
        yield* stillAnswers(subject)
      })
    )

  const scope = Effect.runSync(Scope.make())
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  let made: Subject | undefined
  const shared = Effect.suspend(() =>
    made === undefined
      ? Effect.tap(Scope.extend(engine.subject, scope), (subject) =>
          Effect.sync(() => {
            made = subject
          })
        )
      : Effect.succeed(made)
  )

  /** A test on one adapter for all, which must still answer at its end. */
  const on = (name: string, body: (subject: Subject) => Effect.Effect<void, unknown>) =>
    test(name, () =>
      Effect.gen(function* () {
        const subject = yield* shared
        yield* body(subject)
        yield* stillAnswers(subject)
      })
    )

  describe(`${engine.name}: results`, () => {
    on("a row", ({ adapter }) =>
      Effect.map(ask(adapter, statements.one), (result) => {
        expect(result.rows).toEqual([[1]])
        expect(result.columns).toHaveLength(1)
        expect(result.columnTypes).toHaveLength(1)
        expect(result.truncatedBy).toBeNull()
        expect(result.truncatedCells).toEqual([])
        expect(result.notes).toEqual([])
      })
    )

    on("columns without rows", ({ adapter }) =>
      Effect.map(ask(adapter, statements.noRows), ({ columns, columnTypes, rows, truncatedBy }) => {
        expect(columns).toEqual(["id", "name"])
        expect(columnTypes).toHaveLength(2)
        expect(rows).toEqual([])
        expect(truncatedBy).toBeNull()
      })
    )

    on("duplicate names", ({ adapter }) =>
      Effect.map(ask(adapter, statements.named(["a", "b", "a", "a_2", "a"])), ({ columns, rows }) => {
        expect(columns).toEqual(["a", "b", "a_3", "a_2", "a_4"])
        expect(rows).toEqual([[1, 2, 3, 4, 5]])
      })
    )

    const odd = ["__proto__", "constructor", "toString", "2024", "a b", "名前", "😀", 'q"q', "select"].filter(
      (name) => !engine.impossibleNames?.includes(name)
    )
    on("odd names", ({ adapter }) =>
      Effect.map(ask(adapter, statements.named(odd)), ({ columns, rows }) => {
        expect(columns).toEqual(odd)
        expect(rows).toEqual([odd.map((_, index) => index + 1)])
      })
    )

    if (!engine.impossibleNames?.includes(""))
      on("columns without names", ({ adapter }) =>
        Effect.map(ask(adapter, statements.named(["a", "", ""])), ({ columns }) =>
          expect(columns).toEqual(["a", "column_2", "column_3"])
        )
      )

    on("parameters", ({ adapter }) =>
      Effect.gen(function* () {
        for (const params of [
          ["it's", 7],
          ["", -1],
          ["'); drop table x; --", 9_007_199_254_740_991],
          ["名前 😀", 0]
        ]) {
          const { rows } = yield* ask(adapter, { sql: statements.echo, params })
          expect(rows).toEqual([params])
        }
      })
    )

    for (const { columnTypes, params = [], rows, sql, what } of engine.values)
      on(what, ({ adapter }) =>
        Effect.map(ask(adapter, { sql, params }), (result) => {
          // 0 and -0 are the same in JSON.
          expect(JSON.parse(JSON.stringify(result.rows))).toEqual(rows)
          if (columnTypes !== undefined) expect(result.columnTypes).toEqual(columnTypes)
        })
      )
  })

  describe(`${engine.name}: limits`, () => {
    const firstNumbers = (n: number) => Array.from({ length: n }, (_, index) => [index + 1])

    on("one row less than maxRows", ({ adapter }) =>
      Effect.map(ask(adapter, statements.numbers(4), { maxRows: 5 }), ({ rows, truncatedBy }) => {
        expect(rows).toEqual(firstNumbers(4))
        expect(truncatedBy).toBeNull()
      })
    )

    on("exactly maxRows", ({ adapter }) =>
      Effect.map(ask(adapter, statements.numbers(5), { maxRows: 5 }), ({ rows, truncatedBy }) => {
        expect(rows).toEqual(firstNumbers(5))
        expect(truncatedBy).toBeNull()
      })
    )

    on("one row more than maxRows", ({ adapter }) =>
      Effect.map(ask(adapter, statements.numbers(6), { maxRows: 5 }), ({ rows, truncatedBy }) => {
        expect(rows).toEqual(firstNumbers(5))
        expect(truncatedBy).toBe("max_rows")
      })
    )

    on("rows without end", ({ adapter }) =>
      Effect.gen(function* () {
        for (const maxRows of [1, 2, 1000]) {
          const { rows, truncatedBy } = yield* ask(adapter, statements.endless, { maxRows })
          expect(rows).toEqual(firstNumbers(maxRows))
          expect(truncatedBy).toBe("max_rows")
        }
      })
    )

    for (const format of ["columnar", "records"] as const)
      on(`maxBytes over rows without end, ${format}`, ({ adapter }) =>
        Effect.gen(function* () {
          const maxBytes = 20_000
          const result = yield* ask(adapter, statements.endlessText, { maxBytes, maxRows: 100_000, format })
          expect(result.truncatedBy).toBe("max_bytes")
          expect(result.rows.length).toBeGreaterThan(10)
          const asSent =
            format === "columnar"
              ? result.rows
              : [result.rows.map(([cell]) => ({ [result.columns[0] ?? ""]: cell }))].flat()
          const bytes = Buffer.byteLength(JSON.stringify(asSent))
          expect(bytes).toBeLessThanOrEqual(maxBytes)
          // The next row would not have fitted.
          expect(bytes + 1000).toBeGreaterThan(maxBytes)
        })
      )

    on("a first row beyond maxBytes", ({ adapter }) =>
      Effect.map(
        ask(adapter, statements.endlessText, { maxBytes: 500 }),
        ({ columns, rows, truncatedBy }) => {
          expect(columns).toHaveLength(1)
          expect(rows).toEqual([])
          expect(truncatedBy).toBe("max_bytes")
        }
      )
    )

    on("exactly maxCellBytes", ({ adapter }) =>
      Effect.map(ask(adapter, statements.text(64), { maxCellBytes: 64 }), ({ rows, truncatedCells }) => {
        expect(rows).toEqual([["x".repeat(64)]])
        expect(truncatedCells).toEqual([])
      })
    )

    on("a cell beyond maxCellBytes", ({ adapter }) =>
      Effect.gen(function* () {
        for (const bytes of [65, 100_000, 4_000_000]) {
          const { columns, rows, truncatedBy, truncatedCells } = yield* ask(adapter, statements.text(bytes), {
            maxCellBytes: 64
          })
          expect(rows).toEqual([["x".repeat(64)]])
          expect(truncatedCells).toEqual([{ row: 0, column: columns[0], bytes }])
          expect(truncatedBy).toBeNull()
        }
      })
    )

    on("all limits at once", ({ adapter }) =>
      Effect.map(
        ask(adapter, statements.endlessText, { maxBytes: 1000, maxCellBytes: 16, maxRows: 3 }),
        ({ rows, truncatedBy, truncatedCells }) => {
          expect(rows).toHaveLength(3)
          expect(rowBytes(rows)).toBeLessThanOrEqual(1000)
          expect(truncatedBy).toBe("max_rows")
          expect(truncatedCells.map(({ bytes, row }) => [row, bytes])).toEqual([
            [0, 1000],
            [1, 1000],
            [2, 1000]
          ])
        }
      )
    )
  })

  describe(`${engine.name}: failures`, () => {
    for (const { category, code, params = [], reason, sql } of engine.errors)
      on(`${reason}: ${sql.slice(0, 60)}`, ({ adapter }) =>
        Effect.map(Effect.flip(ask(adapter, { sql, params })), (failure) => {
          expect({ category: failure._tag, reason: failure.reason }).toEqual({ category, reason })
          expect(failure.message).not.toBe("")
          if (code !== undefined) expect(failure.engine?.code).toBe(code)
        })
      )

    on("a write", ({ adapter }) =>
      Effect.map(Effect.flip(ask(adapter, statements.write)), (failure) => {
        expect(failure._tag).toBe("QueryRejected")
        expect(["read_only", "statement_type"]).toContain(failure.reason)
      })
    )

    test("a source that cannot be reached, asked twice", () =>
      Effect.gen(function* () {
        const adapter = yield* engine.unreachable.subject
        for (let time = 0; time < 2; time++) {
          const failure = yield* Effect.flip(ask(adapter, statements.one))
          expect(failure).toMatchObject({
            _tag: "ConnectionFailed",
            reason: engine.unreachable.reason
          })
        }
      }))
  })

  describe(`${engine.name}: stopping`, () => {
    on("an interruption stops the statement in the engine", ({ adapter, isRunning }) =>
      Effect.gen(function* () {
        const fiber = yield* Effect.fork(ask(adapter, statements.runaway))
        yield* until(isRunning)
        yield* Fiber.interrupt(fiber)
        yield* until(Effect.map(isRunning, (running) => !running))
      })
    )

    on("a deadline stops the statement in the engine", ({ adapter, isRunning }) =>
      Effect.gen(function* () {
        const answer = yield* ask(adapter, statements.runaway).pipe(
          Effect.either,
          // The adapter may have a deadline of its own behind the caller's.
          Effect.timeoutTo({ duration: "700 millis", onSuccess: Either.flip, onTimeout: () => undefined })
        )
        expect(answer).toBeUndefined()
        yield* until(Effect.map(isRunning, (running) => !running))
      })
    )

    on("an interruption before the statement has begun", ({ adapter, isRunning }) =>
      Effect.gen(function* () {
        for (let time = 0; time < 5; time++) {
          const fiber = yield* Effect.fork(ask(adapter, statements.runaway))
          for (let turn = 0; turn < time; turn++) yield* Effect.yieldNow()
          yield* Fiber.interrupt(fiber)
        }
        yield* until(Effect.map(isRunning, (running) => !running))
      })
    )

    test("the end of the adapter stops the statement in the engine", () =>
      Effect.gen(function* () {
        const isRunning = yield* Effect.scoped(
          Effect.gen(function* () {
            const { adapter, isRunning } = yield* engine.subject
            yield* Effect.forkScoped(ask(adapter, statements.runaway))
            yield* until(isRunning)
            return isRunning
          })
        )
        yield* until(Effect.map(isRunning, (running) => !running))
      }))
  })

  describe(`${engine.name}: concurrency`, () => {
    if (engine.atOnce === undefined)
      on("a statement is answered while two others run", ({ adapter, isRunning }) =>
        Effect.gen(function* () {
          const heavy = yield* Effect.forkAll([
            ask(adapter, statements.runaway),
            ask(adapter, statements.runaway)
          ])
          yield* until(isRunning)
          const { rows } = yield* ask(adapter, statements.one)
          expect(rows).toEqual([[1]])
          yield* Fiber.interrupt(heavy)
          yield* until(Effect.map(isRunning, (running) => !running))
        })
      )
    else
      on("a statement waits for the one before", ({ adapter, isRunning }) =>
        Effect.gen(function* () {
          const heavy = yield* Effect.fork(ask(adapter, statements.runaway))
          yield* until(isRunning)
          const waiting = yield* Effect.fork(ask(adapter, statements.one))
          yield* Fiber.interrupt(heavy)
          expect((yield* Fiber.join(waiting)).rows).toEqual([[1]])
        })
      )

    on("answers belong to their statements", ({ adapter }) =>
      Effect.gen(function* () {
        const counts = Array.from({ length: 30 }, (_, index) => index + 1)
        const answers = yield* Effect.forEach(counts, (n) => ask(adapter, statements.numbers(n)), {
          concurrency: 3
        })
        expect(answers.map(({ rows }) => rows.length)).toEqual(counts)
      })
    )

    on("a failure leaves the others alone", ({ adapter }) =>
      Effect.gen(function* () {
        const [failed, answered] = yield* Effect.all(
          [Effect.either(ask(adapter, "select from where")), ask(adapter, statements.numbers(500))],
          { concurrency: 2 }
        )
        expect(Either.isLeft(failed)).toBe(true)
        expect(answered.rows).toHaveLength(500)
      })
    )
  })

  describe(`${engine.name}: a lost connection`, () => {
    alone("while a statement runs", ({ adapter, cutConnections, isRunning }) =>
      Effect.gen(function* () {
        const fiber = yield* Effect.fork(Effect.flip(ask(adapter, statements.runaway)))
        yield* until(isRunning)
        yield* cutConnections
        const failure = yield* Fiber.join(fiber)
        expect(failure).toMatchObject({ _tag: "ConnectionFailed", reason: "closed", beforeFirstRow: true })
      })
    )

    alone("while nothing runs: the next call, or its one retry, is answered", ({ adapter, cutConnections }) =>
      Effect.gen(function* () {
        for (let time = 0; time < 3; time++) {
          yield* ask(adapter, statements.one)
          yield* cutConnections
          const first = yield* Effect.either(ask(adapter, statements.one))
          if (Either.isRight(first)) continue
          expect(first.left).toMatchObject({
            _tag: "ConnectionFailed",
            reason: "closed",
            beforeFirstRow: true
          })
          const { rows } = yield* ask(adapter, statements.one)
          expect(rows).toEqual([[1]])
        }
      })
    )

    alone("before the first call", ({ adapter, cutConnections }) =>
      Effect.gen(function* () {
        yield* cutConnections
        yield* Effect.retry(ask(adapter, statements.one), { times: 1 })
      })
    )
  })

  describe(`${engine.name}: beside queries`, () => {
    on("a plan does not run the statement", ({ adapter }) =>
      Effect.gen(function* () {
        const query = yield* Policy.admit(adapter.engine, { sql: statements.runaway, params: [] })
        const plan = yield* adapter.explain(query, limits)
        expect(plan.length).toBeGreaterThan(0)
        expect(plan.every((line) => line.trim() !== "")).toBe(true)
      })
    )

    on("the plan of a wrong statement fails as the statement does", ({ adapter }) =>
      Effect.gen(function* () {
        const query = yield* Policy.admit(adapter.engine, {
          sql: "select * from mcpv_no_such_table",
          params: []
        })
        const failure = yield* Effect.flip(adapter.explain(query, limits))
        expect(failure).toMatchObject({ _tag: "QueryFailed", reason: "unknown_table" })
      })
    )

    on("the client reads on the adapter's connections", ({ adapter }) =>
      Effect.scoped(
        Effect.gen(function* () {
          const client = yield* adapter.client
          const rows = yield* client.unsafe(statements.numbers(3))
          expect(rows.map((row) => Object.values(row).map(Number))).toEqual([[1], [2], [3]])
          const failure = yield* Effect.flip(client.unsafe("select * from mcpv_no_such_table"))
          expect(failure.cause).toMatchObject({ _tag: "QueryFailed", reason: "unknown_table" })
        })
      )
    )

    on("the client's parameters keep their types", ({ adapter }) =>
      Effect.scoped(
        Effect.gen(function* () {
          const sql = yield* adapter.client
          const found = yield* sql`select 1 as found where ${3} = 3 and ${2.5} > 2.25 and ${"3"} = '3'
            and ${9_007_199_254_740_993n} = 9007199254740993 and coalesce(${null}, 7) = 7
            and ${true} = ${sql.literal(statements.yes)}
            and ${Uint8Array.of(1, 2, 255)} = ${sql.literal(statements.bytes)}`
          expect(found.map((row) => Object.values(row))).toEqual([[1]])
          const [length] = yield* sql`select length(${"abcd"}) as n`.pipe(
            Effect.orElse(() => sql`select len(${"abcd"}) as n`)
          )
          expect(length).toEqual({ n: 4 })
        })
      )
    )

    on("the client answers whole or fails", ({ adapter }) =>
      Effect.scoped(
        Effect.gen(function* () {
          const client = yield* adapter.client
          const [large] = yield* client.unsafe(statements.text(3_000_000))
          expect(Object.values(large ?? {}).map((text) => String(text).length)).toEqual([3_000_000])
          for (const endless of [statements.endless, statements.endlessText]) {
            const failure = yield* Effect.flip(client.unsafe(endless))
            expect(failure.cause).toMatchObject({ _tag: "QueryFailed", reason: "resource_limit" })
          }
        })
      )
    )

    alone("the client's statement ends with its time", ({ adapter, isRunning }) =>
      Effect.scoped(
        Effect.gen(function* () {
          const client = yield* adapter.client
          const fiber = yield* Effect.fork(Effect.flip(client.unsafe(statements.runaway)))
          yield* TestServices.provideLive(until(isRunning))
          yield* TestClock.adjust(catalogLimits.timeoutMs)
          const { cause } = yield* Fiber.join(fiber)
          expect(cause).toMatchObject({ _tag: "QueryFailed", reason: "timeout" })
          yield* TestServices.provideLive(until(Effect.map(isRunning, (running) => !running)))
        })
      ).pipe(Effect.provide(TestContext.TestContext))
    )

    on("the report names the engine", ({ adapter }) =>
      Effect.map(adapter.report, ({ excessPrivileges, version }) => {
        expect(version).toMatch(/\d/)
        expect(Array.isArray(excessPrivileges)).toBe(true)
      })
    )
  })
}
