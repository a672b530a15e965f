/** How the server ends, and what becomes of its calls and of its child processes, whoever dies first. */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { errorOf, valueOf } from "../support/Answer.js"
import { fill, folder, isBeingRead } from "../support/Folder.js"
import { childrenOf, eventually, isAlive, killAndWait } from "../support/Process.js"
import { Program } from "../support/Program.js"

const place = folder()
let made = 0
/** A file of its own for each test, so that a lock on it belongs to that test's server. */
const database = () =>
  fill(join(place, `d${++made}.db`), "create table t (a)", "insert into t values (1), (2)")
const runaway =
  "with recursive c(i) as (select a from t union all select i + 1 from c) select count(*) from c"
/** Ends by itself after some hundreds of milliseconds. */
const slow =
  "with recursive c(i) as (select 1 from t union all select i + 1 from c where i < 600000) select count(*) as n from c"
const fine = { code: 0, signal: null }

const start = async (file = database()) => {
  const program = await new Program([`db=${file}`]).initialize()
  return { program, file, running: () => eventually("the statement runs", () => isBeingRead(file)) }
}

const gone = (pids: ReadonlyArray<number>) =>
  eventually("the child processes are gone", () => !pids.some(isAlive))

describe("the end of stdin", () => {
  it("with nothing to do", async () => {
    const { program } = await start()
    program.closeStdin()
    expect(await program.ended).toEqual(fine)
  })

  it("before the handshake", async () => {
    const program = new Program([database()])
    program.closeStdin()
    expect(await program.ended).toEqual(fine)
    expect(program.stdout).toBe("")
  })

  it("with calls in flight: they are answered, and no child is left", async () => {
    const { program, running } = await start()
    const ids = [program.beginQuery({ sql: slow }), program.beginQuery({ sql: slow })]
    await running()
    const children = childrenOf(program.pid)
    expect(children.length).toBeGreaterThan(0)
    program.closeStdin()
    expect(await program.ended).toEqual(fine)
    for (const id of ids) expect(valueOf(await program.answerTo(id)).rows).toEqual([{ n: 1_200_000 }])
    await gone(children)
    expect(program.log.at(-1)).toMatchObject({ event: "server_stopped" })
  })

  it("with a request in the last bytes, without a line's end", async () => {
    const { program } = await start()
    program.process.stdin?.end(
      JSON.stringify({
        jsonrpc: "2.0",
        id: "last",
        method: "tools/call",
        params: { name: "query", arguments: { sql: "select 5 as a" } }
      })
    )
    expect(await program.ended).toEqual(fine)
    const { result } = await program.answer("last")
    expect(result).toMatchObject({ structuredContent: { rows: [{ a: 5 }] } })
  })

  it("with a runaway in flight: it is answered as failed, in bounded time", async () => {
    const { program, running } = await start()
    const id = program.beginQuery({ sql: runaway })
    await running()
    const children = childrenOf(program.pid)
    program.closeStdin()
    expect(await program.ended).toEqual(fine)
    expect(errorOf(await program.answerTo(id))).toMatchObject({
      category: "connection_failed",
      reason: "closed"
    })
    await gone(children)
  })

  it("a large answer arrives whole", async () => {
    const { program } = await start()
    const sql =
      "with recursive c(i) as (values (1) union all select i + 1 from c) select hex(zeroblob(4000)) from c"
    const id = program.beginQuery({ sql, format: "columnar" })
    program.closeStdin()
    expect(await program.ended).toEqual(fine)
    expect(valueOf(await program.answerTo(id)).rowCount).toBe(12)
  })
})

describe("signals", () => {
  it.each(["SIGTERM", "SIGINT"] as const)("%s: calls in flight are answered first", async (signal) => {
    const { program, running } = await start()
    const id = program.beginQuery({ sql: slow })
    await running()
    const children = childrenOf(program.pid)
    program.process.kill(signal)
    expect(await program.ended).toEqual(fine)
    expect(valueOf(await program.answerTo(id)).rowCount).toBe(1)
    await gone(children)
  })

  it("SIGKILL while its children work: they end by themselves", async () => {
    const { file, program, running } = await start()
    program.beginQuery({ sql: runaway })
    program.beginQuery({ sql: runaway })
    await running()
    const children = await eventually("two busy children and a spare", () => {
      const pids = childrenOf(program.pid)
      return pids.length >= 3 ? pids : undefined
    })
    program.process.kill("SIGKILL")
    expect(await program.ended).toEqual({ code: null, signal: "SIGKILL" })
    await gone(children)
    // A process counts as ended a moment before its last thread has let go of its files.
    await eventually("nobody reads the file", () => !isBeingRead(file))
  })

  it("SIGKILL while its children are idle", async () => {
    const { program } = await start()
    await program.query({ sql: "select 1" })
    const children = childrenOf(program.pid)
    program.process.kill("SIGKILL")
    await gone(children)
  })
})

describe("a client that goes away", () => {
  it("without reading: the server ends", async () => {
    const { program } = await start()
    program.process.stdout?.destroy()
    program.beginQuery({ sql: "select 1" })
    // The pipe breaks at the first write to it.
    await eventually(
      "the end",
      () => program.process.exitCode !== null || program.process.signalCode !== null
    )
    expect(program.process.exitCode).toBe(0)
  })
})

describe("a child process that is killed", () => {
  it("while idle: the next call is answered", async () => {
    const { program } = await start()
    for (let time = 0; time < 3; time++) {
      valueOf(await program.query({ sql: "select 1" }))
      await killAndWait(childrenOf(program.pid))
      expect(valueOf(await program.query({ sql: "select count(*) as n from t" })).rows).toEqual([{ n: 2 }])
    }
  })

  it("before its first statement: the call is answered", async () => {
    const { program } = await start()
    const id = program.beginQuery({ sql: "select count(*) as n from t" })
    const children = await eventually("a child", () => {
      const pids = childrenOf(program.pid)
      return pids.length > 0 ? pids : undefined
    })
    await killAndWait(children)
    expect(valueOf(await program.answerTo(id)).rows).toEqual([{ n: 2 }])
  })

  it("while its statement runs: tried once more, then answered as closed", async () => {
    const { program, running } = await start()
    const id = program.beginQuery({ sql: runaway })
    for (const _ of ["first", "retry"]) {
      await running()
      await killAndWait(childrenOf(program.pid))
    }
    expect(errorOf(await program.answerTo(id))).toMatchObject({
      category: "connection_failed",
      reason: "closed",
      retryable: true
    })
    valueOf(await program.query({ sql: "select 1" }))
  })

  it("once while its statement runs: the second attempt is the answer", async () => {
    const { program, running } = await start()
    const id = program.beginQuery({ sql: slow })
    await running()
    await killAndWait(childrenOf(program.pid))
    expect(valueOf(await program.answerTo(id)).rowCount).toBe(1)
    const line = await eventually("its line", () => program.log.find(({ event }) => event === "tool_call"))
    expect(line).toMatchObject({ outcome: "succeeded", attempts: 2 })
  })
})

describe("heavy statements", () => {
  it("run on children of their own, and a cancelled one's child is gone", async () => {
    const { file, program, running } = await start()
    const heavy = [program.beginQuery({ sql: runaway }), program.beginQuery({ sql: runaway })]
    await running()
    // Both run, and a third statement is answered beside them.
    expect(valueOf(await program.query({ sql: "select 1 as a" })).rows).toEqual([{ a: 1 }])
    expect(await program.request("ping")).toMatchObject({ result: {} })
    const before = childrenOf(program.pid)
    expect(before.length).toBeGreaterThanOrEqual(3)
    for (const requestId of heavy) program.notify("notifications/cancelled", { requestId })
    await eventually("both are stopped", () => !isBeingRead(file))
    await eventually("two of the children are gone", () => before.filter(isAlive).length <= before.length - 2)
    valueOf(await program.query({ sql: "select 1" }))
    for (const id of heavy) expect(program.messages.some((message) => message.id === id)).toBe(false)
  })

  it("beyond maxConcurrent wait for their turn", async () => {
    const { program, running } = await start()
    const heavy = Array.from({ length: 4 }, () => program.beginQuery({ sql: runaway, timeoutMs: 20_000 }))
    await running()
    const waiting = program.beginQuery({ sql: "select 7 as a" })
    expect(await program.request("ping")).toMatchObject({ result: {} })
    program.notify("notifications/cancelled", { requestId: heavy[0] })
    expect(valueOf(await program.answerTo(waiting)).rows).toEqual([{ a: 7 }])
  })

  it("a value that would not fit in memory fails, and the server goes on", async () => {
    const { program } = await start()
    const error = errorOf(
      await program.query({
        sql: "with recursive c(i) as (values (1) union all select i + 1 from c where i < 400) select group_concat(hex(zeroblob(1000000)) || i) as t from c"
      })
    )
    expect(error).toMatchObject({ category: "query_failed", reason: "resource_limit" })
    valueOf(await program.query({ sql: "select 1" }))
  })
})

it("leaves no file behind", () => {
  expect(existsSync(join(place, "d1.db"))).toBe(true)
  for (const ending of ["-journal", "-wal", "-shm"])
    expect(existsSync(join(place, `d1.db${ending}`))).toBe(false)
})
