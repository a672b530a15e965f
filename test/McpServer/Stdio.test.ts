import { PassThrough } from "node:stream"
import { describe, expect, it } from "@effect/vitest"
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js"
import * as fc from "fast-check"
import * as Stdio from "../../src/McpServer/Stdio.js"
import type { OutputStream } from "../../src/OutputStream.js"

const setup = async ({ maxLineBytes = 1000, maxPendingBytes = 1000 } = {}) => {
  const input = new PassThrough()
  const written: Array<Record<string, unknown>> = []
  let pending = 0
  let drained: Array<() => void> = []
  const output: OutputStream = {
    write: (text) => {
      expect(text.endsWith("\n")).toBe(true)
      written.push(JSON.parse(text))
    },
    pending: () => pending,
    onDrained: (done) => {
      if (pending === 0) done()
      else drained.push(done)
    }
  }
  let ended = 0
  const stdio = Stdio.make({ input, output, maxLineBytes, maxPendingBytes, onEnd: () => ended++ })
  const received: Array<Record<string, unknown>> = []
  stdio.onmessage = (message: JSONRPCMessage) => {
    received.push(message as unknown as Record<string, unknown>)
  }
  await stdio.start()
  return {
    input,
    stdio,
    written,
    received,
    ended: () => ended,
    setPending: (bytes: number) => {
      pending = bytes
      if (bytes > 0) return
      for (const done of drained) done()
      drained = []
    }
  }
}

/** Lets the stream hand on what was written to it, a piece in each turn of the event loop. */
const turn = async () => {
  for (let left = 50; left > 0; left--) await new Promise((resolve) => setImmediate(resolve))
}

/** Ids of ours tell the client's. */
const stdioId = (internal: unknown): unknown => JSON.parse(String(internal).replace(/^\d+:/, ""))

const ping = (id: string | number) => ({ jsonrpc: "2.0", id, method: "ping" })
const line = (message: unknown) => `${JSON.stringify(message)}\n`

describe("what comes in", () => {
  it("is the same messages however it is cut", async () => {
    const message = fc.record({
      jsonrpc: fc.constant("2.0"),
      id: fc.oneof(fc.string(), fc.integer()),
      method: fc.constant("ping"),
      params: fc.record({ text: fc.string({ unit: "grapheme" }) })
    })
    const ending = fc.constantFrom("\n", "\r\n", "\n\n", " \n")
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(message, ending), { maxLength: 5 }),
        fc.array(fc.nat({ max: 200 }), { maxLength: 8 }),
        async (messages, cuts) => {
          const { input, received, written } = await setup({ maxLineBytes: 10_000 })
          const bytes = Buffer.from(messages.map(([one, end]) => JSON.stringify(one) + end).join(""))
          let from = 0
          for (const cut of [...cuts.filter((at) => at < bytes.length).sort((a, b) => a - b), bytes.length]) {
            input.write(bytes.subarray(from, cut))
            from = cut
          }
          input.end()
          await turn()
          expect(received.map(({ params }) => params)).toEqual(messages.map(([{ params }]) => params))
          expect(written).toEqual([])
        }
      ),
      { numRuns: 50 }
    )
  })

  it("of any kind never throws, and every request is answered or handed on", async () => {
    const anything = fc.oneof(
      fc.json(),
      fc.string({ unit: "binary" }),
      fc
        .record(
          {
            jsonrpc: fc.constantFrom("2.0", "1.0", 2),
            id: fc.oneof(fc.string(), fc.integer(), fc.constant(null), fc.jsonValue()),
            method: fc.oneof(fc.constantFrom("ping", "notifications/cancelled"), fc.jsonValue()),
            params: fc.jsonValue()
          },
          { requiredKeys: [] }
        )
        .map((value) => JSON.stringify(value))
    )
    await fc.assert(
      fc.asyncProperty(anything, async (text) => {
        const { input, received, written } = await setup({ maxLineBytes: 100_000 })
        input.write(`${text.replaceAll("\n", " ")}\n`)
        input.write(line(ping("after")))
        await turn()
        expect(received.at(-1)).toMatchObject({ method: "ping" })
        for (const answer of written)
          expect(answer).toMatchObject({ jsonrpc: "2.0", error: { code: expect.any(Number) } })
      }),
      { numRuns: 200 }
    )
  })

  it("a line of exactly the bound is read, one more is refused, and the next is read", async () => {
    const { input, received, written } = await setup({ maxLineBytes: 100 })
    const padded = (size: number, id: number) => JSON.stringify(ping(id)).padEnd(size, " ")
    input.write(`${padded(100, 1)}\n${padded(101, 2)}\n${padded(50, 3)}\n`)
    await turn()
    expect(received).toHaveLength(2)
    expect(written).toMatchObject([{ error: { code: -32600 } }])
  })
})

describe("ids", () => {
  it("are our own on the way in, and the client's on the way out", async () => {
    const { input, received, stdio, written } = await setup()
    for (const id of [0, 0, "r1"]) input.write(line(ping(id)))
    await turn()
    const internal = received.map(({ id }) => id as string)
    expect(new Set(internal).size).toBe(3)
    expect(internal.map((id) => stdio.clientId(id))).toEqual([0, 0, "r1"])
    for (const id of [...internal].reverse()) await stdio.send({ jsonrpc: "2.0", id, result: {} })
    expect(written.map(({ id }) => id)).toEqual(["r1", 0, 0])
    expect(stdio.inFlight()).toBe(0)
  })

  it("an answer is sent once, and none after a cancellation", async () => {
    const { input, received, stdio, written } = await setup()
    for (const id of ["a", "b"]) input.write(line(ping(id)))
    await turn()
    const [a, b] = received.map(({ id }) => id as string)
    input.write(line({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: "b" } }))
    await turn()
    expect(received.at(-1)).toMatchObject({ method: "notifications/cancelled", params: { requestId: b } })
    for (const id of [a, a, b]) await stdio.send({ jsonrpc: "2.0", id: id ?? "", result: {} })
    expect(written.map(({ id }) => id)).toEqual(["a"])
  })

  it("of two equal ones the later is cancelled", async () => {
    const { input, received } = await setup()
    for (const id of ["a", "a"]) input.write(line(ping(id)))
    input.write(line({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: "a" } }))
    await turn()
    expect(received[2]).toMatchObject({ params: { requestId: received[1]?.["id"] } })
  })

  it("the handshake cannot be cancelled", async () => {
    const { input, received, stdio } = await setup()
    input.write(line({ ...ping("i"), method: "initialize" }))
    input.write(line({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: "i" } }))
    await turn()
    expect(received).toHaveLength(1)
    expect(stdio.inFlight()).toBe(1)
  })
})

describe("the way out", () => {
  it("a message that JSON cannot hold is answered with an error", async () => {
    const { input, received, stdio, written } = await setup()
    input.write(line(ping("big")))
    await turn()
    await stdio.send({ jsonrpc: "2.0", id: received[0]?.["id"] as string, result: { big: 5n } })
    expect(written).toMatchObject([{ id: "big", error: { code: -32603 } }])
    expect(stdio.inFlight()).toBe(0)
  })

  it("nothing is read while the client does not take answers", async () => {
    const { input, received, setPending, stdio } = await setup({ maxPendingBytes: 10 })
    input.write(line(ping(1)))
    await turn()
    setPending(11)
    let ready = false
    stdio.onReader(() => {
      ready = true
    })
    await stdio.send({ jsonrpc: "2.0", id: received[0]?.["id"] as string, result: {} })
    input.write(line(ping(2)))
    await turn()
    expect(received).toHaveLength(1)
    expect(ready).toBe(false)
    setPending(0)
    await turn()
    expect(received).toHaveLength(2)
    expect(ready).toBe(true)
  })

  it("of many calls in one chunk only the first are begun once the client does not take answers", async () => {
    const { input, received, setPending } = await setup({ maxPendingBytes: 10 })
    input.write(Array.from({ length: 1000 }, (_, id) => line(ping(id))).join(""))
    setPending(11)
    await turn()
    expect(received.length).toBeLessThan(500)
    input.end()
    setPending(0)
    await turn()
    expect(received.map(({ id }) => stdioId(id))).toEqual(Array.from({ length: 1000 }, (_, id) => id))
  })

  it("tells when nothing is in flight", async () => {
    const { input, received, stdio } = await setup()
    let idle = 0
    stdio.onIdle(() => idle++)
    expect(idle).toBe(1)
    input.write(line(ping(1)))
    await turn()
    stdio.onIdle(() => idle++)
    expect(idle).toBe(1)
    await stdio.send({ jsonrpc: "2.0", id: received[0]?.["id"] as string, result: {} })
    expect(idle).toBe(2)
  })
})

describe("the end", () => {
  it("is told once, after the last line", async () => {
    const { ended, input, received } = await setup()
    input.end(JSON.stringify(ping("last")))
    await turn()
    await turn()
    expect(received).toMatchObject([{ method: "ping" }])
    expect(ended()).toBe(1)
  })

  it("what was taken before a stop is read", async () => {
    const { input, received, setPending, stdio } = await setup({ maxPendingBytes: 10 })
    input.write(Array.from({ length: 1000 }, (_, id) => line(ping(id))).join(""))
    setPending(11)
    await turn()
    expect(received.length).toBeLessThan(500)
    stdio.stop()
    expect(received).toHaveLength(1000)
  })

  it("after a stop nothing is taken", async () => {
    const { input, received, stdio } = await setup()
    stdio.stop()
    input.write(line(ping(1)))
    await turn()
    expect(received).toEqual([])
  })
})
