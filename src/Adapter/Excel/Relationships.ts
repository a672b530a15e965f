/** How parts of a package name each other. */
import type { Archive } from "./Archive.js"
import { readXml } from "./Xml.js"

export interface Relationship {
  readonly id: string
  /** The last segment of its type, which the transitional and the strict standard share, say `worksheet`. */
  readonly type: string
  /** The part's name in the archive. */
  readonly target: string
}

const decodeUri = (text: string) => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** A target is relative to the folder of the part that names it, or absolute. */
const resolve = (archive: Archive, source: string, target: string): string => {
  const folder = source.slice(0, source.lastIndexOf("/") + 1)
  const name = target.startsWith("/") ? target : `${folder}${target}`
  return archive.has(name) ? name : decodeUri(name)
}

/**
 * The relationships of a part (of the package for ""). What points outside the package is left out, and so never
 * followed. A part without relationships has none.
 */
export const readRelationships = async (
  archive: Archive,
  source: string
): Promise<ReadonlyArray<Relationship>> => {
  const slash = source.lastIndexOf("/") + 1
  const part = `${source.slice(0, slash)}_rels/${source.slice(slash)}.rels`
  if (!archive.has(part)) return []
  const found: Array<Relationship> = []
  await readXml(archive.read(part), {
    open: (tag) => {
      if (tag.name !== "Relationship" || tag.get("TargetMode") === "External") return
      const type = tag.get("Type") ?? ""
      found.push({
        id: tag.get("Id") ?? "",
        type: type.slice(type.lastIndexOf("/") + 1),
        target: resolve(archive, source, tag.get("Target") ?? "")
      })
    },
    close: () => {},
    text: () => {},
    data: () => {}
  })
  return found
}
