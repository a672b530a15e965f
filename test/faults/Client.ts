/** The running server and all that a client says to it and hears from it. Nothing here judges: see `Oracle.ts`. */
import { type ChildProcess, spawn } from "node:child_process"
import * as Effect from "effect/Effect"
import type { Scope } from "effect/Scope"
import { lineReader } from "../support/Lines.js"
import type { Call } from "./Calls.js"

export type Message = Record<string, unknown>

export interface Heard {
  /** In milliseconds, as `performance.now()`. */
  readonly at: number
  readonly message: Message
}

/** A request and everything that came for its id. */
export interface Asked {
  readonly id: string | number
  readonly method: string
  readonly call: Call | undefined
  /** JSON-RPC error codes that are an answer, too. */
  readonly errorCodes: ReadonlyArray<number>
  readonly sentAt: number
  readonly deadlineMs: number
  /** More than one, where the client used the id again. */
  wanted: number
  cancelledAt: number | undefined
  readonly answers: Array<Heard>
}

/** A span of time in which answers could not arrive. */
export interface Stall {
  readonly from: number
  to: number
}

export interface AskOptions {
  readonly id?: string | number
  readonly call?: Call
  readonly errorCodes?: ReadonlyArray<number>
  readonly deadlineMs?: number
}

export interface Client {
  readonly pid: number
  readonly asked: ReadonlyMap<string | number, Asked>
  readonly ask: (method: string, params: unknown, options?: AskOptions) => Asked
  readonly cancel: (asked: Asked) => void
  /** What is no request; `answers` errors without an id are expected for it. */
  readonly sendRaw: (bytes: string | Buffer, answers: number) => void
  readonly answered: (asked: Asked) => Effect.Effect<void>
  /** Keeps nothing more of a request that has its answer. */
  readonly forget: (asked: Asked) => void
  /** As often as it is resumed. */
  readonly pause: () => void
  readonly resume: () => void
  readonly stalls: ReadonlyArray<Stall>
  /** Errors without an id: how many came and were to come. */
  readonly nameless: { came: number; wanted: number }
  /** What came on stdout and was no message, and other things that must not happen. */
  readonly faults: ReadonlyArray<string>
  readonly endInput: () => void
  readonly signal: (signal: NodeJS.Signals) => void
  readonly exit: Effect.Effect<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>
  readonly hasExited: () => boolean
  readonly stderr: () => ReadonlyArray<string>
}

export interface ClientOptions {
  readonly nodeArguments: ReadonlyArray<string>
  readonly serverArguments: ReadonlyArray<string>
  readonly environment: Record<string, string>
  /** Hears all bytes of the server. */
  readonly listen: (bytes: Buffer, stream: "stdout" | "stderr") => void
}

const isId = (value: unknown): value is string | number =>
  typeof value === "string" || typeof value === "number"

export const make = (options: ClientOptions): Effect.Effect<Client, never, Scope> =>
  Effect.gen(function* () {
    const child: ChildProcess = yield* Effect.acquireRelease(
      Effect.sync(() =>
        spawn(process.execPath, [...options.nodeArguments, "dist/main.js", ...options.serverArguments], {
          env: { PATH: process.env["PATH"] ?? "", ...options.environment },
          stdio: ["pipe", "pipe", "pipe"]
        })
      ),
      (process) => Effect.sync(() => process.kill("SIGKILL"))
    )
    const asked = new Map<string | number, Asked>()
    const waiting = new Map<string | number, Array<() => void>>()
    const stalls: Array<Stall> = []
    const nameless = { came: 0, wanted: 0 }
    const faults: Array<string> = []
    const stderr: Array<string> = []
    const exits: Array<() => void> = []
    let ended: { readonly code: number | null; readonly signal: NodeJS.Signals | null } | undefined
    let lastId = 0
    /** Several may want a pause at the same time. */
    let pauses = 0

    const hear = (line: string) => {
      let message: Message
      try {
        message = JSON.parse(line)
      } catch {
        faults.push(`stdout holds what is no JSON: ${line.slice(0, 200)}`)
        return
      }
      const id = message["id"]
      if (!isId(id)) {
        if ("error" in message && !("method" in message)) nameless.came++
        else faults.push(`an unexpected message came: ${line.slice(0, 200)}`)
        return
      }
      const request = asked.get(id)
      if (request === undefined) {
        faults.push(`an answer to nothing came: ${line.slice(0, 200)}`)
        return
      }
      request.answers.push({ at: performance.now(), message })
      for (const done of waiting.get(id)?.splice(0) ?? []) done()
    }
    const readOut = lineReader(hear)
    const readErr = lineReader((line) => stderr.push(line))
    child.stdout?.on("data", (bytes: Buffer) => {
      options.listen(bytes, "stdout")
      readOut(bytes)
    })
    child.stderr?.on("data", (bytes: Buffer) => {
      options.listen(bytes, "stderr")
      readErr(bytes)
    })
    child.stdin?.on("error", () => {})
    child.on("close", (code, signal) => {
      ended = { code, signal }
      for (const done of exits.splice(0)) done()
      for (const list of waiting.values()) for (const done of list.splice(0)) done()
    })

    const write = (bytes: string | Buffer) => void child.stdin?.write(bytes)

    return {
      pid: child.pid ?? 0,
      asked,
      ask: (method, params, { call, deadlineMs = 4000, errorCodes = [], id = ++lastId } = {}) => {
        const known = asked.get(id)
        const request: Asked = known ?? {
          id,
          method,
          call,
          errorCodes,
          sentAt: performance.now(),
          deadlineMs,
          wanted: 0,
          cancelledAt: undefined,
          answers: []
        }
        request.wanted++
        asked.set(id, request)
        write(
          `${JSON.stringify({ jsonrpc: "2.0", id, method, ...(params === undefined ? {} : { params }) })}\n`
        )
        return request
      },
      cancel: (request) => {
        request.cancelledAt = performance.now()
        write(
          `${JSON.stringify({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: request.id, reason: "The user went on." } })}\n`
        )
      },
      sendRaw: (bytes, answers) => {
        nameless.wanted += answers
        write(bytes)
      },
      answered: (request) =>
        Effect.async((resume) => {
          if (request.answers.length >= request.wanted || ended !== undefined) return resume(Effect.void)
          const list = waiting.get(request.id) ?? []
          waiting.set(request.id, list)
          const done = () => resume(Effect.void)
          list.push(done)
          return Effect.sync(() => {
            const at = list.indexOf(done)
            if (at >= 0) list.splice(at, 1)
          })
        }),
      forget: ({ id }) => {
        asked.delete(id)
        waiting.delete(id)
      },
      pause: () => {
        if (++pauses > 1) return
        child.stdout?.pause()
        stalls.push({ from: performance.now(), to: Number.POSITIVE_INFINITY })
      },
      resume: () => {
        if (--pauses > 0) return
        const last = stalls.at(-1)
        if (last !== undefined) last.to = performance.now()
        child.stdout?.resume()
      },
      stalls,
      nameless,
      faults,
      endInput: () => void child.stdin?.end(),
      signal: (signal) => void child.kill(signal),
      exit: Effect.async((resume) => {
        if (ended !== undefined) return resume(Effect.succeed(ended))
        const done = () => resume(Effect.succeed(ended ?? { code: null, signal: null }))
        exits.push(done)
        return Effect.sync(() => {
          const at = exits.indexOf(done)
          if (at >= 0) exits.splice(at, 1)
        })
      }),
      hasExited: () => ended !== undefined,
      stderr: () => stderr
    }
  })
