/**
 * Bytes ↔ JSON-RPC messages on the standard streams. Everything that comes in is answered or is known to need no
 * answer; nothing but whole messages goes out. Requests get ids of our own on their way to the SDK, because clients
 * use 0, repeat ids and cancel what is long done.
 */
import { isUtf8 } from "node:buffer"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js"
import { isJsonObject, type JsonObject } from "../JsonObject.js"
import * as LineSplitter from "../LineSplitter.js"
import type { OutputStream } from "../OutputStream.js"
import * as ExactIntegers from "./ExactIntegers.js"

type Id = string | number

export interface StdioOptions {
  readonly input: NodeJS.ReadableStream
  readonly output: OutputStream
  /** A longer line is refused without being kept. */
  readonly maxLineBytes: number
  /** Reading stops while more than this is unread by the client. */
  readonly maxPendingBytes: number
  /** The client will send nothing more. */
  readonly onEnd: () => void
}

export interface Stdio extends Transport {
  /** Requests that have no answer yet. */
  readonly inFlight: () => number
  /** Calls back once no request is in flight. */
  readonly onIdle: (done: () => void) => void
  /** Calls back once the client has taken enough of the answers before. */
  readonly onReader: (ready: () => void) => void
  /** Stops reading, and leaves the input to whoever made it. */
  readonly stop: () => void
  /** The client's own id of a request. */
  readonly clientId: (internal: Id) => Id
  /** The SDK did not take the message that it is being handed; see `server.onerror`. */
  readonly refuse: () => void
}

/**
 * At most this much is read in a turn of the event loop, some thirty calls. They are begun, refused or answered before more
 * are read, so that a flood of calls is never in memory at once, and is held back when the client does not read.
 */
const bytesATurn = 8192

const errorCodes = { parse: -32700, request: -32600, params: -32602, internal: -32603 } as const

const isId = (value: unknown): value is Id =>
  typeof value === "string" || (typeof value === "number" && Number.isFinite(value))

const blank = /^[ \t\r]*$/

/** An id of our own says whose it stands for, also when the request has been cancelled before it was begun. */
const toInternal = (serial: number, id: Id): string => `${serial}:${JSON.stringify(id)}`
const toClient = (internal: Id): Id => {
  const text = String(internal)
  const id: unknown = JSON.parse(text.slice(text.indexOf(":") + 1))
  return isId(id) ? id : internal
}

export const make = (options: StdioOptions): Stdio => {
  const { input, output } = options
  const inFlight = new Map<Id, { readonly id: Id; readonly method: string }>()
  const idle: Array<() => void> = []
  let lastId = 0
  let refused = false
  let ended = false

  const isBehind = () => output.pending() > options.maxPendingBytes

  const write = (message: object) => {
    output.write(`${JSON.stringify(message)}\n`)
    if (isBehind()) hold()
  }

  const fail = (code: number, message: string, id?: Id) =>
    write({ jsonrpc: "2.0", ...(id === undefined ? {} : { id }), error: { code, message } })

  const settle = (internal: Id) => {
    inFlight.delete(internal)
    if (inFlight.size === 0) for (const done of idle.splice(0)) done()
  }

  const deliver = (message: JsonObject) => {
    refused = false
    // What the SDK makes of the message is checked there, by its own schemas.
    transport.onmessage?.(message as JSONRPCMessage)
    return !refused
  }

  const receiveRequest = (message: JsonObject, method: string, id: Id) => {
    const internal = toInternal(++lastId, id)
    inFlight.set(internal, { id, method })
    if (deliver({ ...message, id: internal })) return
    settle(internal)
    fail(errorCodes.request, "The message is not a valid request.", id)
  }

  const receiveCancellation = (message: JsonObject) => {
    const params = isJsonObject(message["params"]) ? message["params"] : {}
    const found = [...inFlight].reverse().find(([, { id }]) => id === params["requestId"])
    // Too late, unknown, or the handshake, which cannot be cancelled.
    if (found === undefined || found[1].method === "initialize") return
    settle(found[0])
    deliver({ ...message, params: { ...params, requestId: found[0] } })
  }

  const receive = (message: unknown) => {
    if (!isJsonObject(message)) return fail(errorCodes.request, "A message must be one JSON object.")
    const { id, jsonrpc, method, params } = message
    const known = isId(id) ? id : undefined
    if (jsonrpc !== "2.0") return fail(errorCodes.request, 'The field jsonrpc must be "2.0".', known)
    // This server asks its client nothing, so an answer belongs to nothing.
    if (!("method" in message) && ("result" in message || "error" in message)) return
    if (typeof method !== "string")
      return fail(errorCodes.request, "The field method must be a string.", known)
    if ("id" in message && known === undefined)
      return fail(errorCodes.request, "The field id must be a string or a number.")
    if (params !== undefined && !isJsonObject(params))
      return known === undefined
        ? undefined
        : fail(errorCodes.params, "The field params must be an object.", known)
    if (known !== undefined) return receiveRequest(message, method, known)
    if (method === "notifications/cancelled") return receiveCancellation(message)
    deliver(message)
  }

  const receiveLine = (bytes: Buffer) => {
    const text = bytes.toString("utf8").replace(/^\ufeff/, "")
    if (blank.test(text)) return
    let message: unknown
    try {
      message = JSON.parse(text)
    } catch {
      return fail(errorCodes.parse, "The line is not JSON.")
    }
    if (!isUtf8(bytes)) {
      const id = isJsonObject(message) && isId(message["id"]) ? message["id"] : undefined
      return fail(errorCodes.parse, "The line is not valid UTF-8.", id)
    }
    receive(ExactIntegers.restore(message, text))
  }

  const lines = LineSplitter.make(options.maxLineBytes, receiveLine, () =>
    fail(errorCodes.request, `A message may have at most ${options.maxLineBytes} bytes.`)
  )

  /** What the input has given and has not been read yet. */
  const pieces: Array<Buffer> = []
  /** The input is paused, and `readOn` comes again. */
  let held = false
  let closed = false

  const hold = () => {
    if (held || ended) return
    held = true
    input.pause()
    readOn()
  }

  const readOn = (): void => {
    if (ended) return
    if (isBehind()) {
      output.onDrained(readOn)
      return
    }
    const piece = pieces.shift()
    if (piece !== undefined) {
      setImmediate(readOn)
      lines.feed(piece)
      return
    }
    held = false
    if (closed) finish()
    else input.resume()
  }

  const finish = () => {
    if (ended) return
    lines.end()
    ended = true
    options.onEnd()
  }

  const onData = (chunk: Buffer | string) => {
    const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk
    for (let at = 0; at < bytes.length; at += bytesATurn) pieces.push(bytes.subarray(at, at + bytesATurn))
    hold()
  }

  const onEnd = () => {
    closed = true
    if (pieces.length === 0) finish()
  }

  const transport: Stdio = {
    start: async () => {
      if (ended) return
      input.on("data", onData).on("end", onEnd).on("close", onEnd).on("error", onEnd)
    },
    send: async (message) => {
      if (!("id" in message) || message.id === undefined || "method" in message) return write(message)
      const request = inFlight.get(message.id)
      // Cancelled meanwhile: it gets no answer.
      if (request === undefined) return
      try {
        write({ ...message, id: request.id })
      } catch {
        fail(errorCodes.internal, "The answer cannot be written as JSON.", request.id)
      }
      settle(message.id)
    },
    close: async () => {
      transport.stop()
      transport.onclose?.()
    },
    inFlight: () => inFlight.size,
    onIdle: (done) => {
      if (inFlight.size === 0) done()
      else idle.push(done)
    },
    onReader: (ready) => {
      if (isBehind()) output.onDrained(ready)
      else ready()
    },
    stop: () => {
      // What has been taken from the input is answered, too.
      if (!ended) for (const piece of pieces.splice(0)) lines.feed(piece)
      ended = true
      input.pause()
      input.off("data", onData).off("end", onEnd).off("close", onEnd).off("error", onEnd)
    },
    clientId: toClient,
    refuse: () => {
      refused = true
    }
  }
  return transport
}
