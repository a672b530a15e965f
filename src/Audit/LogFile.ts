/** A log file that is read in pieces, and again when it has grown. */
import { close, fstat, open, read, stat } from "node:fs"
import * as Effect from "effect/Effect"
import type { Scope } from "effect/Scope"
import { FatalError } from "../FatalError.js"
import * as LineSplitter from "../LineSplitter.js"

/** More than the server accepts as a message, and so more than it writes as a line. */
const maxLineBytes = 64 * 2 ** 20
const chunkBytes = 256 * 1024

export interface LineSink {
  readonly line: (bytes: Buffer, number: number) => void
  readonly tooLong: (number: number) => void
  /** Bytes that were read since the last call. */
  readonly progress: (bytes: number) => void
}

export interface LogFile {
  readonly name: string
  /** In bytes; undefined where it is no regular file. */
  readonly size: number | undefined
  /** Reads what there is. Succeeds with whether there was anything. */
  readonly read: Effect.Effect<boolean, FatalError>
  /** The last line may lack its line break. */
  readonly end: Effect.Effect<void>
}

const fatal = (name: string, error: unknown) =>
  new FatalError({
    problems: [
      {
        where: "LOGFILE",
        expected: `a readable file at ${name}`,
        found: error instanceof Error && "code" in error ? String(error.code) : "none"
      }
    ]
  })

type Callback<A> = (error: Error | null, value: A) => void

const attempt = <A>(name: string, start: (done: Callback<A>) => void): Effect.Effect<A, FatalError> =>
  Effect.async((resume) => {
    start((error, value) => resume(error ? Effect.fail(fatal(name, error)) : Effect.succeed(value)))
    // What the file system has begun cannot be taken back, and hurts nobody.
    return Effect.void
  })

/** `-` is standard input. */
export const make = (name: string, sink: LineSink): Effect.Effect<LogFile, FatalError, Scope> =>
  Effect.gen(function* () {
    let number = 0
    const lines = LineSplitter.make(
      maxLineBytes,
      (bytes) => sink.line(bytes, ++number),
      () => sink.tooLong(++number)
    )
    const openFile = name === "-" ? Effect.succeed(0) : attempt<number>(name, (done) => open(name, "r", done))
    const closeFile = (descriptor: number) =>
      descriptor === 0 ? Effect.void : Effect.sync(() => close(descriptor, () => {}))

    let descriptor = yield* openFile
    yield* Effect.addFinalizer(() => closeFile(descriptor))
    const opened = yield* attempt<import("node:fs").Stats>(name, (done) => fstat(descriptor, done))
    if (opened.isDirectory()) return yield* fatal(name, Object.assign(new Error(), { code: "a folder" }))
    const regular = opened.isFile()
    let identity = opened.ino
    let position = 0

    const rest = Effect.gen(function* () {
      let any = false
      while (true) {
        // A new one each time: the splitter keeps what belongs to an unfinished line.
        const buffer = Buffer.allocUnsafe(chunkBytes)
        const bytes = yield* attempt<number>(name, (done) =>
          read(descriptor, buffer, 0, chunkBytes, regular ? position : null, done)
        )
        if (bytes === 0) return any
        any = true
        position += bytes
        lines.feed(buffer.subarray(0, bytes))
        sink.progress(bytes)
      }
    })

    /** A log that was rotated goes on in another file of its name; one that was emptied begins anew. */
    const again = Effect.gen(function* () {
      if (!regular) return
      const there = yield* Effect.option(attempt<import("node:fs").Stats>(name, (done) => stat(name, done)))
      if (there._tag === "None" || (there.value.ino === identity && there.value.size >= position)) return
      yield* rest
      yield* Effect.sync(lines.end)
      if (there.value.ino !== identity) {
        yield* closeFile(descriptor)
        descriptor = yield* openFile
        identity = there.value.ino
      }
      position = 0
      number = 0
    })

    return {
      name: name === "-" ? "standard input" : name,
      size: regular ? opened.size : undefined,
      read: Effect.zipRight(again, rest),
      end: Effect.sync(lines.end)
    }
  })
