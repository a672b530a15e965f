/** How answers are read, beside what is read: see `Value.test.ts` and `SqlServer.test.ts` for that. */
import { describe, expect, it } from "@effect/vitest"
import { Connection } from "tedious"
import { TokenHandler } from "tedious/lib/token/handler.js"
import { TokenReader, TokenStream } from "../../../src/Adapter/SqlServer/TokenReader.js"
import { columns, done, doneStatus, intColumn, intValue, row } from "./Tds.js"

class Counting extends TokenHandler {
  rows = 0
  override onColMetadata() {}
  override onDone() {}
  override onRow() {
    this.rows++
  }
}

/** Reads an answer to its end, or until nobody waits for it; says whether its end was told. */
const read = async (answer: AsyncIterable<Buffer>, handler: Counting, isOver: () => boolean) => {
  const { config, debug } = new Connection({ server: "unused.example" })
  let ended = false
  await new Promise<void>((resolve, reject) => {
    const reader = new TokenReader(answer, debug, config.options, 0)
    const stream = new TokenStream(reader, handler, { isOver, fail: reject })
    stream.on("end", () => {
      ended = true
    })
    stream.parser.on("close", resolve)
  })
  return ended
}

const packet = Buffer.concat(Array.from({ length: 400 }, (_, n) => row([intValue(n)])))

describe("an answer that has arrived", () => {
  it("is read without keeping the event loop from everything else", async () => {
    let turned = false
    let packets = 0
    async function* answer() {
      yield columns([intColumn("n")])
      setImmediate(() => {
        turned = true
      })
      // Each is there when it is asked for, so that reading alone never waits.
      for (; !turned && packets < 5000; packets++) yield packet
      yield done(doneStatus.final)
    }
    const handler = new Counting()
    expect(await read(answer(), handler, () => false)).toBe(true)
    expect(turned).toBe(true)
    expect(handler.rows).toBe(packets * 400)
  })

  it("is dropped once its connection is over, which hears neither of a row nor of the end", async () => {
    async function* answer() {
      yield columns([intColumn("n")])
      yield packet
      yield done(doneStatus.final)
    }
    const handler = new Counting()
    expect(await read(answer(), handler, () => handler.rows === 3)).toBe(false)
    expect(handler.rows).toBe(3)
    const late = new Counting()
    expect(await read(answer(), late, () => late.rows === 400)).toBe(false)
  })
})
