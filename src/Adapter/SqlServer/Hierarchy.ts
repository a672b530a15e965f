/**
 * The text of a hierarchyid from its bytes. A node is a run of labels; each label is a bit pattern whose first bits say
 * how many digits follow and what to add to them. Its last bit tells whether the label ends its level (`/1/`) or an
 * inserted one follows (`/1.1/`), in which case the label is stored one higher.
 */

interface Pattern {
  readonly prefix: string
  /** `x` is a digit, `0` and `1` stand as they are, `T` is the last bit. */
  readonly rest: string
  readonly base: bigint
}

const pattern = (prefix: string, rest: string, base: bigint): Pattern => ({ prefix, rest, base })

const wide = "xxxxxxxxxxxxxxxxxxx0xxxxxx0xxx0x1xxxT"
const widest = `xxxxxxxxxxxxxx0xx${wide}`

const patterns: ReadonlyArray<Pattern> = [
  pattern("01", "xxT", 0n),
  pattern("100", "xxT", 4n),
  pattern("101", "xxxT", 8n),
  pattern("110", "xx0x1xxxT", 16n),
  pattern("1110", "xxx0xxx0x1xxxT", 80n),
  pattern("11110", "xxxxx0xxx0x1xxxT", 1104n),
  pattern("111110", wide, 5200n),
  pattern("111111", widest, 4_294_972_496n),
  pattern("00111", "xxxT", -8n),
  pattern("0010", "xx0x1xxxT", -72n),
  pattern("000110", "xxxxx0xxx0x1xxxT", -4168n),
  pattern("000101", wide, -4_294_971_464n),
  pattern("000100", widest, -281_479_271_682_120n)
]

/** `/1/2.5/`, or undefined where the bytes follow no known pattern. */
export const hierarchyText = (bytes: Uint8Array): string | undefined => {
  const bits = Array.from(bytes, (byte) => byte.toString(2).padStart(8, "0")).join("")
  let at = 0
  let text = "/"
  while (bits.indexOf("1", at) >= 0) {
    const found = patterns.find(({ prefix }) => bits.startsWith(prefix, at))
    if (found === undefined) return undefined
    at += found.prefix.length
    const run = bits.slice(at, at + found.rest.length)
    if (run.length < found.rest.length) return undefined
    let digits = 0n
    for (const [index, place] of [...found.rest].entries())
      if (place === "x") digits = (digits << 1n) | BigInt(run[index] ?? "0")
    const ends = run.endsWith("1")
    text += `${found.base + digits - (ends ? 0n : 1n)}${ends ? "/" : "."}`
    at += found.rest.length
  }
  return text.endsWith("/") ? text : undefined
}
