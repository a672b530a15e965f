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

describe("an answer that has arrived", () => {
  it("is read without keeping the event loop from everything else", async () => {
    const packet = Buffer.concat(Array.from({ length: 400 }, (_, n) => row([intValue(n)])))
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
    const { config, debug } = new Connection({ server: "unused.example" })
    const handler = new Counting()
    await new Promise<void>((resolve, reject) => {
      const reader = new TokenReader(answer(), debug, config.options, 0)
      new TokenStream(reader, handler, reject).on("end", resolve)
    })
    expect(turned).toBe(true)
    expect(handler.rows).toBe(packets * 400)
  })
})
