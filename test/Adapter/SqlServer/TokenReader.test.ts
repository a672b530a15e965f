/** How answers are read, beside what is read: see `Value.test.ts` and `SqlServer.test.ts` for that. */
import { describe, expect, it } from "@effect/vitest"
import { Connection } from "tedious"
import { TokenHandler } from "tedious/lib/token/handler.js"
import { TokenReader, TokenStream } from "../../../src/Adapter/SqlServer/TokenReader.js"
import { eventually } from "../../support/Process.js"
import { columns, done, doneStatus, intColumn, intValue, row, u8 } from "./Tds.js"

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

  it("reaches its reader before the token that is not there yet, and ends with an error inside it", async () => {
    const handler = new Counting()
    async function* answer() {
      yield columns([intColumn("n")])
      yield Buffer.concat([packet, u8(0xd1), u8(4)])
      await eventually("the whole rows are read", () => handler.rows === 400)
    }
    await expect(read(answer(), handler, () => false)).rejects.toThrow("ended inside a token")
    const gone = new Counting()
    async function* cut() {
      yield columns([intColumn("n")])
      yield Buffer.concat([packet, u8(0xd1), u8(4)])
    }
    // A rejection that nobody heard would fail the run.
    expect(await read(cut(), gone, () => gone.rows === 3)).toBe(false)
  })
})
