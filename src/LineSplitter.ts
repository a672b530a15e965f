/** Bytes → lines, each within a bound, whatever the chunks are. */

export interface LineSplitter {
  /** Chunks are kept until their last line is complete: they must not be written to again. */
  readonly feed: (chunk: Buffer) => void
  /** What came after the last line break is a line, too. */
  readonly end: () => void
}

/** `line` receives each line without its line break; `tooLong` is called instead for a line beyond the bound. */
export const make = (maxBytes: number, line: (bytes: Buffer) => void, tooLong: () => void): LineSplitter => {
  let parts: Array<Buffer> = []
  let size = 0
  let skipping = false
  const keep = (part: Buffer) => {
    if (skipping || part.length === 0) return
    size += part.length
    if (size > maxBytes) {
      parts = []
      skipping = true
      tooLong()
    } else parts.push(part)
  }
  const finish = () => {
    if (!skipping) line(parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts))
    parts = []
    size = 0
    skipping = false
  }
  return {
    feed: (chunk) => {
      let start = 0
      for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, start)) {
        keep(chunk.subarray(start, at))
        finish()
        start = at + 1
      }
      keep(chunk.subarray(start))
    },
    end: () => {
      if (size > 0) finish()
    }
  }
}
