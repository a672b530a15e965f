/** Cell styles, as far as they say what a number shows. */
import type { Archive } from "./Archive.js"
import { builtinKind, type FormatKind, kindOfCode } from "./NumberFormat.js"
import { readXml } from "./Xml.js"

/** The kind of each cell style, by the number that cells refer to. */
export const readStyles = async (archive: Archive, part: string): Promise<ReadonlyArray<FormatKind>> => {
  const custom = new Map<number, FormatKind>()
  const ids: Array<number> = []
  let inCells = false
  await readXml(archive.read(part), {
    open: (tag) => {
      if (tag.name === "cellXfs") inCells = true
      else if (tag.name === "numFmt")
        custom.set(Number(tag.get("numFmtId")), kindOfCode(tag.get("formatCode") ?? ""))
      else if (tag.name === "xf" && inCells) ids.push(Number(tag.get("numFmtId") ?? 0))
    },
    close: (name) => {
      if (name === "cellXfs") inCells = false
    },
    text: () => {},
    data: () => {}
  })
  return ids.map((id) => custom.get(id) ?? builtinKind(id))
}
