/** JSON-RPC byte by byte: everything is answered once, and the next request is served. */
import { join } from "node:path"
import { afterEach, beforeAll, describe, expect, it } from "vitest"
import { valueOf } from "../support/Answer.js"
import { fill, folder, isBeingRead } from "../support/Folder.js"
import { eventually } from "../support/Process.js"
import { type Message, Program } from "../support/Program.js"

const shop = fill(join(folder(), "shop.db"), "create table t (a)", "insert into t values (1)")
const runaway =
  "with recursive c(i) as (select a from t union all select i + 1 from c) select count(*) from c"

let server: Program
beforeAll(async () => {
  server = await new Program([shop]).initialize()
})

/**
 * Sends something and gives what came before the answer to the second of two pings. The first may be read together with
 * the lines, and overtake what takes some more steps to refuse.
 */
const answersTo = async (...lines: ReadonlyArray<string | object>): Promise<ReadonlyArray<Message>> => {
  const from = server.messages.length
  for (const line of lines) server.send(line)
  const first = server.begin("ping")
  await server.answer(first)
  const second = server.begin("ping")
  await server.answer(second)
  return server.messages.slice(from).filter(({ id }) => id !== first && id !== second)
}

afterEach(async () => {
  const { rows } = valueOf(await server.query({ sql: "select a from t", format: "columnar" }))
  expect(rows).toEqual([[1]])
})

const request = (fields: object) => ({ jsonrpc: "2.0", id: "x", ...fields })
const call = (fields: object) => request({ method: "tools/call", params: fields })

describe("what is no request", () => {
  const cases: ReadonlyArray<readonly [string, string | object, number, string | number | undefined]> = [
    ["no JSON", "{", -32700, undefined],
    ["words", "hello", -32700, undefined],
    ["half a string", '{"jsonrpc":"2.0","id":1,"method":"ping', -32700, undefined],
    ["a number", "7", -32600, undefined],
    ["null", "null", -32600, undefined],
    ["a text", '"ping"', -32600, undefined],
    ["a batch", `[${JSON.stringify(request({ method: "ping" }))}]`, -32600, undefined],
    ["an empty batch", "[]", -32600, undefined],
    ["an empty object", {}, -32600, undefined],
    ["another version", { jsonrpc: "1.0", id: "x", method: "ping" }, -32600, "x"],
    ["no version", { id: 4711, method: "ping" }, -32600, 4711],
    ["no method", request({}), -32600, "x"],
    ["a method that is a number", request({ method: 1 }), -32600, "x"],
    ["an id that is null", request({ id: null, method: "ping" }), -32600, undefined],
    ["an id that is an object", request({ id: {}, method: "ping" }), -32600, undefined],
    ["params that are a list", request({ method: "tools/list", params: [] }), -32602, "x"],
    ["params that are a text", request({ method: "tools/call", params: "query" }), -32602, "x"],
    ["an unknown method", request({ method: "tools/drop" }), -32601, "x"],
    ["a call without a tool", call({ arguments: {} }), -32602, "x"],
    ["a call of a tool that is a number", call({ name: 1 }), -32602, "x"],
    ["a call of an unknown tool", call({ name: "execute", arguments: {} }), -32602, "x"],
    ["arguments that are a list", call({ name: "query", arguments: ["select 1"] }), -32602, "x"],
    ["arguments that are a text", call({ name: "query", arguments: "select 1" }), -32602, "x"]
  ]

  it.each(cases)("%s", async (_, line, code, id) => {
    const answers = await answersTo(line)
    expect(answers).toEqual([
      {
        jsonrpc: "2.0",
        ...(id === undefined ? {} : { id }),
        error: { code, message: expect.any(String) }
      }
    ])
  })

  it("a call without arguments is one with bad arguments", async () => {
    const { result } = await server.request("tools/call", { name: "query" })
    expect(result).toMatchObject({ isError: true })
  })

  it("an integer of any length keeps its digits as a parameter", async () => {
    const sql = "select ?1 as a, typeof(?1) as b, ?2 = 9007199254740992 as c"
    const ask = (id: string, params: string) => {
      server.send(
        `{"jsonrpc":"2.0","id":"${id}","method":"tools/call","params":{"name":"query","arguments":{"sql":"${sql}","params":${params}}}}`
      )
      return server.answer(id)
    }
    expect(await ask("digits", "[9007199254740993, 9007199254740992]")).toMatchObject({
      result: { structuredContent: { rows: [{ a: "9007199254740993", b: "integer", c: 1 }] } }
    })
    expect(await ask("infinite", "[1e400, 1]")).toMatchObject({ result: { isError: true } })
  })

  it("the name of an unknown tool is answered with the names of the tools", async () => {
    const [answer] = await answersTo(call({ name: "quarry", arguments: {} }))
    expect(answer?.error?.message).toContain("query")
  })

  it("bytes that are no UTF-8", async () => {
    const bytes = Buffer.from(JSON.stringify(request({ method: "ping" })))
    bytes[bytes.indexOf("x")] = 0xff
    const from = server.messages.length
    server.process.stdin?.write(Buffer.concat([bytes, Buffer.from("\n")]))
    await eventually("an answer", () => server.messages.length > from)
    expect(server.messages.slice(from)).toMatchObject([{ error: { code: -32700 } }])
  })
})

describe("what needs no answer", () => {
  it.each([
    ["an empty line", ""],
    ["a line of spaces", " \t\r"],
    ["an unknown notification", { jsonrpc: "2.0", method: "notifications/unknown" }],
    ["a notification with odd params", { jsonrpc: "2.0", method: "notifications/progress", params: [1] }],
    ["an answer to nothing", { jsonrpc: "2.0", id: 99, result: {} }],
    [
      "a cancellation of nothing",
      { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 9 } }
    ],
    ["a cancellation without a request", { jsonrpc: "2.0", method: "notifications/cancelled" }]
  ])("%s", async (_, line) => expect(await answersTo(line)).toEqual([]))
})

describe("framing", () => {
  const write = (bytes: Buffer) =>
    new Promise<void>((resolve, reject) =>
      server.process.stdin?.write(bytes, (error) => (error ? reject(error) : resolve()))
    )

  it("a request byte by byte, with characters cut apart", async () => {
    const text = "名前 😀 é"
    const line = JSON.stringify(
      request({
        id: "bytes",
        method: "tools/call",
        params: { name: "query", arguments: { sql: "select ? as a", params: [text] } }
      })
    )
    for (const byte of Buffer.from(`${line}\n`)) await write(Buffer.of(byte))
    const { result = {} } = await server.answer("bytes")
    expect(result["structuredContent"]).toMatchObject({ rows: [{ a: text }] })
  })

  it("several requests in one write, with CR LF and a byte order mark", async () => {
    const lines = [1, 2, 3].map((n) => JSON.stringify(request({ id: `m${n}`, method: "ping" })))
    await write(Buffer.from(`\ufeff${lines.join("\r\n")}\r\n`))
    for (const n of [1, 2, 3]) expect(await server.answer(`m${n}`)).toMatchObject({ result: {} })
  })

  it("a line of more than 16 MiB is refused, and the next is read", async () => {
    const answers = await answersTo(`"${"x".repeat(17 * 2 ** 20)}"`)
    expect(answers).toMatchObject([{ error: { code: -32600 } }])
  })

  it("a value nested a hundred thousand deep", async () => {
    const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`
    const from = server.messages.length
    server.send(
      `{"jsonrpc":"2.0","id":"deep","method":"tools/call","params":{"name":"query","arguments":{"sql":"select ?","params":${deep}}}}`
    )
    await eventually("an answer", () => server.messages.length > from)
    const [answer] = server.messages.slice(from)
    // What cannot be read whole has no id that could be answered to.
    expect(answer?.error?.code === -32700 || answer?.id === "deep").toBe(true)
  })
})

describe("ids", () => {
  it.each([0, -1, 1.5, "", "r1", "0", 2 ** 53])("%j", async (id) => {
    expect(await answersTo(request({ id, method: "ping" }))).toEqual([{ jsonrpc: "2.0", id, result: {} }])
  })

  it("the same one twice at the same time: two answers", async () => {
    const line = (sql: string) => call({ name: "query", arguments: { sql } })
    const from = server.messages.length
    server.send(line("select 1 as a"))
    server.send(line("select 2 as a"))
    await eventually("two answers", () => server.messages.length === from + 2)
    const seen = server.messages.slice(from)
    expect(seen.map(({ id }) => id)).toEqual(["x", "x"])
    expect(JSON.stringify(seen)).toMatch(/\[\{"a":1\}\].*\[\{"a":2\}\]|\[\{"a":2\}\].*\[\{"a":1\}\]/)
  })

  it.each([0, "zero", 12])(
    "a request %j that runs is cancelled: no answer, and the engine stops",
    async (id) => {
      server.send(
        request({ id, method: "tools/call", params: { name: "query", arguments: { sql: runaway } } })
      )
      await eventually("the statement runs", () => isBeingRead(shop))
      const cancel = {
        jsonrpc: "2.0",
        method: "notifications/cancelled",
        params: { requestId: id, reason: "enough" }
      }
      expect(await answersTo(cancel, cancel)).toEqual([])
      await eventually("the statement is stopped", () => !isBeingRead(shop))
      expect(server.messages.filter((message) => message.id === id && "error" in message)).toEqual([])
    }
  )
})

describe("the handshake", () => {
  it("answers pings before it, and tools after it", async () => {
    const program = new Program([shop])
    expect(await program.request("ping")).toMatchObject({ result: {} })
    await program.initialize()
    expect(await program.request("tools/list")).toHaveProperty("result.tools")
  })

  it("names the server and takes the client's version of the protocol", async () => {
    const program = new Program([shop])
    const { result } = await program.request("initialize", {
      protocolVersion: "2024-11-05",
      capabilities: {},
      clientInfo: { name: "old", version: "1" }
    })
    expect(result).toMatchObject({
      protocolVersion: "2024-11-05",
      serverInfo: { name: "mcp-query", version: expect.any(String) },
      capabilities: { tools: {} }
    })
  })
})

it("many calls at once: each gets its own answer", async () => {
  const ids = Array.from({ length: 300 }, (_, n) =>
    server.beginQuery({ sql: "select ? as n", params: [n], format: "columnar" })
  )
  const answers = await Promise.all(ids.map((id) => server.answerTo(id)))
  // Beyond the queue's bound a call may be turned away, but not left unanswered.
  answers.forEach((answer, n) => {
    if (answer.ok) expect(answer.value.rows).toEqual([[n]])
    else expect(answer.error.reason).toBe("overloaded")
  })
  expect(answers.filter(({ ok }) => ok).length).toBeGreaterThan(200)
})

it("a client that reads late gets every answer, whole and once", async () => {
  const program = await new Program([shop]).initialize()
  program.process.stdout?.pause()
  const sql =
    "with recursive c(i) as (values (1) union all select i + 1 from c) select hex(zeroblob(4000)) as t from c"
  // Many times what a pipe holds.
  const ids = Array.from({ length: 60 }, () => program.beginQuery({ sql, format: "columnar" }))
  const answered = () => program.log.filter(({ event }) => event === "tool_call").length
  await eventually("the server has more to say than a pipe holds", () => answered() >= 10)
  program.process.stdout?.resume()
  for (const id of ids) expect(valueOf(await program.answerTo(id)).rowCount).toBe(12)
  expect(new Set(program.messages.map(({ id }) => id)).size).toBe(program.messages.length)
})
