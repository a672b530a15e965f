/** Keys that stand twice in one object of a JSON text: `JSON.parse` keeps the last and says nothing. Pure. */

interface Level {
  /** Null in an array. */
  readonly keys: Set<string> | null
  /** The key or index that is being read. */
  at: PropertyKey
}

const tokens = /"(?:[^"\\]|\\.)*"|[{}[\],:]/g

/** Their paths, in order. `text` is valid JSON. */
export const repeatedKeys = (text: string): ReadonlyArray<ReadonlyArray<PropertyKey>> => {
  const repeated: Array<ReadonlyArray<PropertyKey>> = []
  const open: Array<Level> = []
  let keyNext = false
  for (const [token] of text.matchAll(tokens)) {
    const level = open.at(-1)
    switch (token) {
      case "{":
        open.push({ keys: new Set(), at: "" })
        keyNext = true
        break
      case "[":
        open.push({ keys: null, at: 0 })
        keyNext = false
        break
      case "}":
      case "]":
        open.pop()
        keyNext = false
        break
      case ",":
        keyNext = level !== undefined && level.keys !== null
        if (typeof level?.at === "number") level.at++
        break
      case ":":
        keyNext = false
        break
      default: {
        if (!keyNext || level?.keys == null) break
        const key: string = JSON.parse(token)
        level.at = key
        if (level.keys.has(key)) repeated.push(open.map(({ at }) => at))
        level.keys.add(key)
      }
    }
  }
  return repeated
}
