import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import { Problem } from "../../../src/Adapter/Excel/Problem.js"
import { decodeText, readXml } from "../../../src/Adapter/Excel/Xml.js"

async function* chunksOf(bytes: Buffer, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

/** What a document says, one line an event; runs of text that only chunks divide are joined. */
const events = async (document: string | Buffer, size = 7): Promise<ReadonlyArray<string>> => {
  const seen: Array<string> = []
  let text = ""
  const flush = () => {
    if (text !== "") seen.push(`text ${JSON.stringify(text)}`)
    text = ""
  }
  await readXml(chunksOf(Buffer.from(document), size), {
    open: (tag) => {
      flush()
      seen.push(`open ${tag.name}${tag.find("a") ? ` a=${JSON.stringify(tag.get("a"))}` : ""}`)
    },
    close: (name) => {
      flush()
      seen.push(`close ${name}`)
    },
    text: (bytes, from, to) => {
      text += decodeText(bytes, from, to)
    },
    data: (more) => {
      text += more
    }
  })
  return seen
}

const problemOf = (document: string | Buffer) =>
  events(document).then(
    () => "read",
    (error: unknown) => (error instanceof Problem ? error.code : error)
  )

describe("Xml", () => {
  it("tags, attributes, text, comments, instructions and sections", async () => {
    const document =
      "<?xml version='1.0'?><!-- <r> --><r a='1' b=\"x>y\">one<x:s a = '&lt;2'/><!-- - --><![CDATA[<t>&amp;]]>two</r >\n<!-- end -->"
    const expected = [
      'open r a="1"',
      'text "one"',
      'open s a="<2"',
      "close s",
      'text "<t>&amp;two"',
      "close r"
    ]
    for (const size of [1, 2, 3, 7, 64, 1000]) expect(await events(document, size)).toEqual(expected)
  })

  it("entities, character references and line ends", async () => {
    expect(await events("<r>&lt;&gt;&amp;&quot;&apos;&#65;&#x1F600;é\r\n\r\u4e2d</r>")).toEqual([
      "open r",
      `text ${JSON.stringify("<>&\"'A😀é\n\n中")}`,
      "close r"
    ])
    expect(await events("<r a='x\ny\tz &#10;'/>")).toEqual(['open r a="x y z  "', "close r"])
  })

  it("text survives any chunking", async () => {
    const escape = (text: string) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/\r/g, "&#13;")
    const text = fc
      .string({ unit: "grapheme", maxLength: 40 })
      .filter((each) => !/[\0\ufffe\uffff]/.test(each))
    await fc.assert(
      fc.asyncProperty(text, fc.integer({ min: 1, max: 50 }), async (each, size) => {
        const expected = each === "" ? [] : [`text ${JSON.stringify(each)}`]
        expect(await events(`<r>${escape(each)}</r>`, size)).toEqual(["open r", ...expected, "close r"])
      })
    )
  })

  it.each([
    ["UTF-8 with a mark", Buffer.from("\ufeff<r>é</r>")],
    ["UTF-16 LE", Buffer.from("\ufeff<?xml version='1.0' encoding='UTF-16'?><r>é</r>", "utf16le")],
    ["UTF-16 LE without a mark", Buffer.from("<r>é</r>", "utf16le")],
    ["UTF-16 BE", Buffer.from("\ufeff<r>é</r>", "utf16le").swap16()],
    ["Latin-1", Buffer.from("<?xml version='1.0' encoding='ISO-8859-1'?><r>é</r>", "latin1")],
    ["UTF-16 in name only", Buffer.from("<?xml version='1.0' encoding='utf-16'?><r>é</r>")]
  ])("%s", async (_, bytes) => {
    expect(await events(bytes, 3)).toEqual(["open r", 'text "é"', "close r"])
  })

  it.each([
    ["nothing", ""],
    ["white space", "  \n"],
    ["not closed", "<r><s></r>"],
    ["closed too often", "<r></r></s>"],
    ["cut off in a tag", "<r><s a='1"],
    ["cut off in text", "<r>text"],
    ["cut off in a comment", "<r/><!-- "],
    ["two roots", "<r/><s/>"],
    ["text before", "text<r/>"],
    ["text behind", "<r/>text"],
    ["no quotes", "<r a=1/>"],
    ["no value", "<r a/>"],
    ["no name", "< r/>"],
    ["an unknown entity", "<r>&foo;</r>"],
    ["an entity of an object's", "<r>&constructor;</r>"],
    ["an ampersand alone", "<r>a & b</r>"],
    ["a character that is none", "<r>&#x110000;</r>"],
    ["another declaration", "<!ELEMENT r><r/>"],
    ["an unknown encoding", "<?xml version='1.0' encoding='nosuch'?><r/>"]
  ])("%s is damage", async (_, document) => {
    expect(await problemOf(document)).toBe("WORKBOOK_DAMAGED")
  })

  it.each([
    ["a document type", "<!DOCTYPE r [<!ENTITY a 'b'>]><r>&a;</r>"],
    ["deep nesting", "<r>".repeat(1000)],
    ["an endless tag", `<r a='${"x".repeat(9 * 2 ** 20)}`],
    ["endless text", `<r>${"x".repeat(9 * 2 ** 20)}`]
  ])("%s is hostile", async (_, document) => {
    const bytes = Buffer.from(document)
    const seen = await readXml(chunksOf(bytes, 65_536), {
      open: () => {},
      close: () => {},
      text: () => {},
      data: () => {}
    }).then(
      () => "read",
      (error: unknown) => (error instanceof Problem ? error.code : error)
    )
    expect(seen).toBe("WORKBOOK_HOSTILE")
  })
})
