import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { hierarchyText } from "../../../src/Adapter/SqlServer/Hierarchy.js"
import { harness } from "./Harness.js"
import * as Tds from "./Tds.js"
import type { Reply } from "./TdsServer.js"
import { wireCases } from "./WireTypes.js"

const end = Buffer.concat([Tds.doneInProc(Tds.doneStatus.count, 1n), Tds.doneProc()])
const columns = Tds.columns(wireCases.map(({ column }) => column))
const row = Tds.row(wireCases.map(({ value }) => value))
const cells = wireCases.map(({ cell }) => cell)

const labelled = (row: ReadonlyArray<unknown> | undefined) =>
  Object.fromEntries(wireCases.map(({ name }, i) => [name, row?.[i]]))

describe("wire types", () => {
  it.scopedLive("are read as the contract says, in rows of both kinds", () =>
    Effect.gen(function* () {
      const nullable = wireCases.map((one) => one.null ?? one.value)
      const nulls = Tds.row(nullable)
      const bitmap = Tds.nbcRow(wireCases.map(({ value }, i) => (i % 3 === 0 ? null : value)))
      const { query } = yield* harness({
        statement: (_, reply) => reply.send(columns, row, nulls, bitmap, end)
      })
      const answer = yield* query("select 1")
      expect(answer.columnTypes).toEqual(wireCases.map(({ type }) => type))
      expect(answer.columns).toEqual(wireCases.map(({ name }) => name))
      expect(labelled(answer.rows[0])).toEqual(labelled(cells))
      expect(labelled(answer.rows[1])).toEqual(
        labelled(wireCases.map((one) => (one.null === undefined ? one.cell : null)))
      )
      expect(labelled(answer.rows[2])).toEqual(labelled(cells.map((cell, i) => (i % 3 === 0 ? null : cell))))
    })
  )

  it.scopedLive("are read the same when every byte comes in a packet of its own", () =>
    Effect.gen(function* () {
      const everyByte = (reply: Reply, bytes: Buffer) => {
        const packets = Array.from(bytes, (byte, i) =>
          Tds.packet(Tds.packetType.answer, Buffer.from([byte]), i === bytes.length - 1)
        )
        reply.raw(Buffer.concat(packets))
      }
      const bitmap = Tds.nbcRow(wireCases.map(({ value }) => value))
      const { query } = yield* harness({
        statement: (_, reply) => everyByte(reply, Buffer.concat([columns, row, bitmap, end]))
      })
      const answer = yield* query("select 1")
      expect(labelled(answer.rows[0])).toEqual(labelled(cells))
      expect(labelled(answer.rows[1])).toEqual(labelled(cells))
    })
  )

  it.scopedLive("are read the same in every time zone of the process", () =>
    Effect.gen(function* () {
      const zone = process.env["TZ"]
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          if (zone === undefined) delete process.env["TZ"]
          else process.env["TZ"] = zone
        })
      )
      const { query } = yield* harness({ statement: (_, reply) => reply.send(columns, row, end) })
      for (const tz of ["UTC", "Asia/Jakarta", "America/New_York", "Asia/Kolkata"]) {
        process.env["TZ"] = tz
        expect(labelled((yield* query("select 1")).rows[0])).toEqual(labelled(cells))
      }
    })
  )
})

describe("large values", () => {
  const text = { name: "t", type: Buffer.concat([Tds.u8(0xe7), Tds.u16(0xffff), Tds.latin1]) }
  const encoded = { name: "v", type: Buffer.concat([Tds.u8(0xa7), Tds.u16(0xffff), Tds.latin1]) }
  const utf8 = { name: "u", type: Buffer.concat([Tds.u8(0xa7), Tds.u16(0xffff), Tds.utf8]) }
  const bytes = { name: "b", type: Buffer.concat([Tds.u8(0xa5), Tds.u16(0xffff)]) }
  const image = { name: "i", type: Buffer.concat([Tds.u8(0x22), Tds.u32(0x7fffffff)]), table: "t" }

  it.scopedLive("are cut at whole characters, and their full size is told", () =>
    Effect.gen(function* () {
      const long = `é${"😀".repeat(50_000)}中`
      const odd = 4093
      const { query } = yield* harness({
        statement: (_, reply) =>
          reply.send(
            Tds.columns([text, encoded, utf8, bytes, image]),
            Tds.row([
              Tds.chunks(Tds.ucs2(long), odd),
              Tds.chunks(Buffer.alloc(100_000, 0xe9), odd),
              Tds.chunks(Buffer.from(long), odd),
              Tds.chunks(Buffer.alloc(100_000, 1), odd, false),
              Tds.pointed(Buffer.alloc(100_000, 2))
            ]),
            end
          )
      })
      const answer = yield* query("select 1", { limits: { maxCellBytes: 64 } })
      const size = 2 + 50_000 * 4 + 3
      expect(answer.rows).toEqual([
        [
          `é${"😀".repeat(15)}`,
          "é".repeat(32),
          `é${"😀".repeat(15)}`,
          Buffer.alloc(64, 1).toString("base64"),
          Buffer.alloc(64, 2).toString("base64")
        ]
      ])
      expect(answer.truncatedCells).toEqual([
        { row: 0, column: "t", bytes: size },
        { row: 0, column: "v", bytes: 200_000 },
        { row: 0, column: "u", bytes: size },
        { row: 0, column: "b", bytes: 100_000 },
        { row: 0, column: "i", bytes: 100_000 }
      ])
    })
  )

  it.scopedLive("are not held: 384 MB pass in a bounded memory", () =>
    Effect.gen(function* () {
      const chunk = Buffer.alloc(1_048_576, 0x41)
      const count = 384
      const { query } = yield* harness({
        statement: async (_, reply) => {
          await reply.part(Tds.columns([encoded]), Tds.u8(0xd1), Tds.u64(BigInt(chunk.length * count)))
          for (let i = 0; i < count && !reply.isStopped(); i++) {
            await reply.part(Tds.u32(chunk.length), chunk)
            peak = Math.max(peak, process.memoryUsage().arrayBuffers)
          }
          reply.send(Tds.u32(0), end)
        }
      })
      let peak = 0
      const answer = yield* query("select 1", { limits: { maxCellBytes: 1000 } })
      expect(answer.truncatedCells).toEqual([{ row: 0, column: "v", bytes: chunk.length * count }])
      expect(String(answer.rows[0]?.[0])).toBe("A".repeat(1000))
      // What is not held is garbage, which Node 24 collects late.
      expect(peak).toBeLessThan(240 * 2 ** 20)
    })
  )
})

describe("hierarchyid", () => {
  // The bits of each label are written out by hand from the patterns of the type.
  const bits = (text: string) =>
    Buffer.from(
      (text.replaceAll(" ", "").match(/.{1,8}/g) ?? []).map((byte) => Number.parseInt(byte.padEnd(8, "0"), 2))
    )
  const cases: ReadonlyArray<readonly [string, string]> = [
    ["", "/"],
    ["01 00 1", "/0/"],
    ["01 11 1", "/3/"],
    ["100 00 1", "/4/"],
    ["100 11 1", "/7/"],
    ["101 000 1", "/8/"],
    ["101 111 1", "/15/"],
    ["110 00 0 0 1 000 1", "/16/"],
    ["110 11 0 1 1 111 1", "/79/"],
    ["1110 000 0 000 0 0 1 000 1", "/80/"],
    ["1110 111 0 111 0 1 1 111 1", "/1103/"],
    ["11110 00000 0 000 0 0 1 000 1", "/1104/"],
    ["11110 11111 0 111 0 1 1 111 1", "/5199/"],
    [`111110 ${"0".repeat(19)} 0 ${"0".repeat(6)} 0 000 0 0 1 000 1`, "/5200/"],
    [`111110 ${"1".repeat(19)} 0 ${"1".repeat(6)} 0 111 0 1 1 111 1`, "/4294972495/"],
    [`111111 ${"0".repeat(14)} 0 ${"0".repeat(21)} 0 ${"0".repeat(6)} 0 000 0 0 1 000 1`, "/4294972496/"],
    ["00111 111 1", "/-1/"],
    ["00111 000 1", "/-8/"],
    ["0010 11 0 1 1 111 1", "/-9/"],
    ["0010 00 0 0 1 000 1", "/-72/"],
    ["000110 11111 0 111 0 1 1 111 1", "/-73/"],
    ["01 01 1 01 10 1", "/1/2/"],
    ["01 10 0 01 01 1", "/1.1/"],
    ["01 01 1 01 10 0 00111 110 1", "/1/1.-2/"]
  ]
  for (const [digits, text] of cases) it(text, () => expect(hierarchyText(bits(digits))).toBe(text))

  it("gives up on bytes that are none", () => {
    expect(hierarchyText(Buffer.from([0x00, 0x01]))).toBeUndefined()
    expect(hierarchyText(Buffer.from([0x62]))).toBeUndefined()
  })
})
