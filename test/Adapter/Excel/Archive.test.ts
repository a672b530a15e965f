import { closeSync, openSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Archive, partKey } from "../../../src/Adapter/Excel/Archive.js"
import { Problem } from "../../../src/Adapter/Excel/Problem.js"
import { folder } from "../../support/Folder.js"
import { type ZipEntry, type ZipOptions, zip } from "./Zip.js"

const place = folder()
let count = 0

const limits = { maxEntries: 50, maxPartBytes: 2 ** 20 }

const withArchive = async <A>(bytes: Buffer, use: (archive: Archive) => Promise<A>): Promise<A> => {
  const file = join(place, `${++count}.zip`)
  writeFileSync(file, bytes)
  const descriptor = openSync(file, "r")
  try {
    return await use(await Archive.open(descriptor, limits))
  } finally {
    closeSync(descriptor)
  }
}

const contentOf = async (archive: Archive, name: string) => {
  const chunks: Array<Buffer> = []
  for await (const chunk of archive.read(name)) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

const read = (entries: ReadonlyArray<ZipEntry>, name: string, options?: ZipOptions) =>
  withArchive(zip(entries, options), (archive) => contentOf(archive, name))

const problem = (work: Promise<unknown>) =>
  work.then(
    () => "read",
    (error: unknown) => (error instanceof Problem ? error.code : error)
  )

const long = "text ".repeat(100_000)

describe("Archive", () => {
  it("deflated and stored parts", async () => {
    const entries = [
      { name: "a.xml", content: long },
      { name: "b.xml", content: "stored", stored: true },
      { name: "c.xml", content: "" }
    ]
    expect(await read(entries, "a.xml")).toBe(long)
    expect(await read(entries, "b.xml")).toBe("stored")
    expect(await read(entries, "c.xml")).toBe("")
  })

  it("64-bit sizes and offsets", async () => {
    const entries = [
      { name: "a.xml", content: "first" },
      { name: "b.xml", content: long }
    ]
    expect(await read(entries, "b.xml", { zip64: true })).toBe(long)
    expect(await read(entries, "a.xml", { zip64: true, comment: "a comment" })).toBe("first")
  })

  it("names, however they are written", async () => {
    expect(partKey("/XL\\./a/../Workbook.xml")).toBe("xl/workbook.xml")
    expect(await read([{ name: "/xl/A.xml", content: "a" }], "xl/a.XML")).toBe("a")
    const twice = [
      { name: "a.xml", content: "first" },
      { name: "A.xml", content: "second" }
    ]
    expect(await read(twice, "a.xml")).toBe("first")
  })

  it("entries that point outside are no parts", async () => {
    const entries = [
      { name: "../a.xml", content: "outside" },
      { name: "x/../../a.xml", content: "outside" },
      { name: "folder/", content: "" }
    ]
    await withArchive(zip(entries), async (archive) => expect([...archive.names]).toEqual([]))
  })

  it("leaving early", async () => {
    await withArchive(zip([{ name: "a.xml", content: long, declaredCrc: 1 }]), async (archive) => {
      for await (const chunk of archive.read("a.xml")) {
        expect(chunk.length).toBeGreaterThan(0)
        break
      }
      expect(await problem(contentOf(archive, "a.xml"))).toBe("WORKBOOK_DAMAGED")
    })
  })

  it.each<[string, ZipEntry, string]>([
    ["a wrong checksum", { name: "a", content: long, declaredCrc: 1 }, "WORKBOOK_DAMAGED"],
    ["more than declared", { name: "a", content: long, declaredSize: 100 }, "WORKBOOK_DAMAGED"],
    ["less than declared", { name: "a", content: long, declaredSize: 600_000 }, "WORKBOOK_DAMAGED"],
    ["too much declared", { name: "a", content: long, declaredSize: 2 ** 30 }, "WORKBOOK_TOO_LARGE"],
    ["too much", { name: "a", content: "x".repeat(2 ** 21) }, "WORKBOOK_TOO_LARGE"],
    ["a password", { name: "a", content: long, flags: 1 }, "WORKBOOK_ENCRYPTED"]
  ])("%s", async (_, entry, expected) => {
    expect(await problem(read([entry], "a"))).toBe(expected)
  })

  it("a trap", async () => {
    const entry = { name: "a", content: Buffer.alloc(40 * 2 ** 20) }
    const file = join(place, "trap.zip")
    writeFileSync(file, zip([entry]))
    const descriptor = openSync(file, "r")
    const archive = await Archive.open(descriptor, { ...limits, maxPartBytes: 2 ** 30 })
    expect(await problem(contentOf(archive, "a"))).toBe("WORKBOOK_HOSTILE")
    closeSync(descriptor)
  })

  it("too many entries", async () => {
    const entries = Array.from({ length: 51 }, (_, at) => ({ name: `${at}`, content: "" }))
    expect(await problem(read(entries, "1"))).toBe("WORKBOOK_HOSTILE")
  })

  it("a part that is not there", async () => {
    expect(await problem(read([{ name: "a", content: "" }], "b"))).toBe("WORKBOOK_DAMAGED")
  })

  it("cut off anywhere: a problem, never a wrong part", async () => {
    const whole = zip([
      { name: "a.xml", content: "first ".repeat(50) },
      { name: "b.xml", content: "second ".repeat(50), stored: true }
    ])
    for (let length = 0; length < whole.length; length += 7)
      expect(
        await problem(withArchive(whole.subarray(0, length), (archive) => contentOf(archive, "a.xml"))),
        `${length}`
      ).toMatch(/^WORKBOOK_/)
  })

  it("any byte changed: a problem, or the same part", async () => {
    const whole = zip([{ name: "a.xml", content: "first ".repeat(20) }])
    for (let at = 0; at < whole.length; at++) {
      const bytes = Buffer.from(whole)
      bytes[at] = (bytes[at] ?? 0) ^ 0x55
      const seen = await withArchive(bytes, (archive) => contentOf(archive, "a.xml")).catch(
        (error: unknown) => {
          expect(error, `${at}`).toBeInstanceOf(Problem)
          return "first ".repeat(20)
        }
      )
      expect(seen, `${at}`).toBe("first ".repeat(20))
    }
  })
})
