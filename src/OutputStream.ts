/**
 * Where answers and lines of the log go. A standard descriptor of this process is written without ever blocking the
 * event loop: Node writes to pipes synchronously, so that a client that does not read would stop every other call.
 */
import { fstatSync, writeSync } from "node:fs"
import { Socket } from "node:net"

export interface OutputStream {
  readonly write: (text: string) => void
  /** Bytes that the reader has not taken yet. */
  readonly pending: () => number
  /** Calls back once nothing is pending, or the stream is broken. */
  readonly onDrained: (done: () => void) => void
}

/** A stream that somebody else made. */
export interface ForeignStream extends OutputStream {
  /** Leaves the stream to its maker, once it has taken what was written. */
  readonly release: () => void
}

/** A stream that somebody else made, and ends. What is written after it broke is dropped. */
export const fromWritable = (stream: NodeJS.WritableStream, onBroken: () => void): ForeignStream => {
  let broken = false
  let pending = 0
  const waiting: Array<() => void> = []
  const wake = () => {
    for (const done of waiting.splice(0)) done()
  }
  const fail = () => {
    if (broken) return
    broken = true
    wake()
    onBroken()
  }
  stream.on("error", fail)
  stream.on("close", fail)
  const onDrained = (done: () => void) => {
    if (broken || pending === 0) done()
    else waiting.push(done)
  }
  return {
    write: (text) => {
      if (broken) return
      const bytes = Buffer.from(text, "utf8")
      pending += bytes.length
      stream.write(bytes, () => {
        pending -= bytes.length
        if (pending === 0) wake()
      })
    },
    pending: () => (broken ? 0 : pending),
    onDrained,
    release: () => onDrained(() => void stream.off("error", fail).off("close", fail))
  }
}

const overPipe = (fd: number, onBroken: () => void): OutputStream =>
  fromWritable(new Socket({ fd, readable: false, writable: true }), onBroken)

/** Files and terminals take what they are given. */
const overFile = (fd: number, onBroken: () => void): OutputStream => ({
  write: (text) => {
    try {
      writeSync(fd, text)
    } catch {
      onBroken()
    }
  },
  pending: () => 0,
  onDrained: (done) => done()
})

/** `onBroken` is called when the reader is gone; what is written afterwards is dropped. */
export const make = (fd: 1 | 2, onBroken: () => void): OutputStream => {
  try {
    const stat = fstatSync(fd)
    return stat.isFIFO() || stat.isSocket() ? overPipe(fd, onBroken) : overFile(fd, onBroken)
  } catch {
    // The descriptor was closed before the start.
    return { write: () => {}, pending: () => 0, onDrained: (done) => done() }
  }
}
