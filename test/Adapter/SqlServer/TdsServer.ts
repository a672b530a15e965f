/**
 * A server of TDS 7.4 for what no engine does on demand: refused logins, every offer of TLS, sockets that drop, bytes that
 * mean nothing, a cancellation that is ignored. What it answers is the test's to say.
 */
import { once } from "node:events"
import * as net from "node:net"
import { Duplex } from "node:stream"
import * as tls from "node:tls"
import * as Effect from "effect/Effect"
import type { Scope } from "effect/Scope"
import type { Certificate } from "./Certificate.js"
import * as Tds from "./Tds.js"

/** Points at which the server may end a connection without a word. */
export type Stage = "accept" | "prelogin" | "login" | "session" | "begin" | "statement" | "end"

export interface Call {
  readonly kind: "batch" | "rpc"
  /** The batch, or the statement that sp_executesql is given. */
  readonly sql: string
  readonly body: Buffer
  /** The client asked for a fresh session. */
  readonly reset: boolean
}

export interface Reply {
  /** Sends tokens as a whole message. */
  readonly send: (...tokens: ReadonlyArray<Buffer>) => void
  /** Sends tokens as the beginning of a message, and waits until the socket takes more. */
  readonly part: (...tokens: ReadonlyArray<Buffer>) => Promise<void>
  readonly raw: (bytes: Buffer) => void
  readonly drop: () => void
  /** Resolves when the client has told the server to stop this statement. */
  readonly stopped: Promise<void>
  readonly isStopped: () => boolean
}

export interface Script {
  /** The ENCRYPTION option of the answer to PRELOGIN: 0 off, 1 on, 2 not supported, 3 required. */
  readonly encryption?: number
  readonly certificate?: Certificate
  /** TLS from the first byte on, as TDS 8.0 has it. */
  readonly strict?: boolean
  /** Instead of the answer to PRELOGIN. */
  readonly prelogin?: Buffer | "silence"
  /** Instead of a successful login. */
  readonly login?: ReadonlyArray<Tds.ServerMessage> | "silence" | Buffer
  /** Holds a successful login back. */
  readonly awaitLogin?: () => Promise<void>
  /** Answers a statement. Without it: one row, 1. */
  readonly statement?: (call: Call, reply: Reply) => void | Promise<void>
  /** The depth of transactions that the server claims at the end. */
  readonly depth?: number
  readonly ignoreAttention?: boolean
  /** Ends the connection at a stage, as long as this says so. */
  readonly drop?: (stage: Stage, connection: number) => boolean
  /** Answers the batch before a statement; without it: success. */
  readonly begin?: (reply: Reply, sql: string) => void
}

export interface TdsServer {
  readonly port: number
  /** What happened, in order: `connect 1`, `login 1`, `begin 1 reset`, `statement 1 select 1`, `attention 1`, … */
  readonly log: ReadonlyArray<string>
  /** Connections that are open. */
  readonly open: () => number
  readonly script: Script
  /** Replaces the script for what comes. */
  readonly use: (script: Script) => void
  /** Ends every open connection. */
  readonly dropAll: () => void
  /** Resolves when the log holds an entry that matches. */
  readonly seen: (pattern: RegExp, count?: number) => Promise<void>
}

const preloginAnswer = (encryption: number) =>
  Buffer.concat([Tds.hex("00 000b 0006 01 0011 0001 ff"), Tds.hex("10 00 0000 0000"), Tds.u8(encryption)])

export const oneRow = Buffer.concat([
  Tds.columns([Tds.intColumn("a")]),
  Tds.row([Tds.intValue(1)]),
  Tds.doneInProc(Tds.doneStatus.count, 1n),
  Tds.doneProc()
])

/** During the handshake, TLS records travel inside PRELOGIN packets; afterwards they stand alone. */
class Tunnel extends Duplex {
  readonly #socket: net.Socket
  #handshaking = true

  constructor(socket: net.Socket) {
    super()
    this.#socket = socket
  }

  receive(bytes: Buffer): void {
    this.push(bytes)
  }

  override _read(): void {}

  override _write(bytes: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    // The first record of application data follows the server's last one of the handshake.
    if (bytes[0] === 0x17) this.#handshaking = false
    this.#socket.write(
      this.#handshaking ? Tds.message(bytes, { type: Tds.packetType.prelogin }) : bytes,
      () => done()
    )
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#socket.end()
    done()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.destroy()
    done(error)
  }
}

/** sp_executesql's first parameter: the name, its flags, NVARCHAR or NVARCHAR(MAX), the text. */
const statementOf = (body: Buffer): string => {
  const headers = body.readUInt32LE(0)
  // The procedure's id and its flags.
  let at = headers + 6
  at += 1 + body.readUInt8(at) * 2 + 1
  const length = body.readUInt16LE(at + 1)
  at += 8
  if (length !== 0xffff) return body.toString("utf16le", at + 2, at + 2 + body.readUInt16LE(at))
  at += 8
  const parts: Array<Buffer> = []
  for (;;) {
    const size = body.readUInt32LE(at)
    at += 4
    if (size === 0) break
    parts.push(body.subarray(at, at + size))
    at += size
  }
  return Buffer.concat(parts).toString("utf16le")
}

class Session {
  readonly #id: number
  readonly #raw: net.Socket
  readonly #server: Listener
  #stream: Duplex
  #tunnel: Tunnel | undefined
  /** Bytes of a packet that is not complete: as they came, and as they left the encryption. */
  #wrapped = Buffer.alloc(0)
  #plain = Buffer.alloc(0)
  #parts: Array<Buffer> = []
  #stop: (() => void) | undefined

  constructor(id: number, socket: net.Socket, server: Listener) {
    this.#id = id
    this.#raw = socket
    this.#server = server
    this.#stream = socket
    socket.setNoDelay(true)
    socket.on("error", () => {})
    if (server.script.strict === true) this.#startStrict()
    else socket.on("data", (bytes) => this.#receive(bytes))
  }

  get #script(): Script {
    return this.#server.script
  }

  #drops(stage: Stage): boolean {
    if (this.#script.drop?.(stage, this.#id) !== true) return false
    this.#raw.destroy()
    return true
  }

  #startStrict(): void {
    const { cert, key } = this.#script.certificate ?? { cert: "", key: "" }
    const secure = new tls.TLSSocket(this.#raw, { isServer: true, cert, key, ALPNProtocols: ["tds/8.0"] })
    secure.on("error", () => {})
    secure.on("data", (bytes: Buffer) => this.#receive(bytes))
    this.#stream = secure
  }

  #startTls(): void {
    const { cert, key } = this.#script.certificate ?? { cert: "", key: "" }
    const tunnel = new Tunnel(this.#raw)
    const secure = new tls.TLSSocket(tunnel, { isServer: true, cert, key, maxVersion: "TLSv1.2" })
    tunnel.on("error", () => {})
    secure.on("error", () => this.#raw.destroy())
    secure.on("data", (bytes: Buffer) => this.#packets(bytes))
    this.#tunnel = tunnel
    this.#stream = secure
  }

  #receive(bytes: Buffer): void {
    if (this.#tunnel === undefined) {
      this.#packets(bytes)
      return
    }
    // A PRELOGIN packet carries handshake records, anything else is one itself.
    this.#wrapped = Buffer.concat([this.#wrapped, bytes])
    while (this.#wrapped.length > 0) {
      if (this.#wrapped[0] !== Tds.packetType.prelogin) {
        this.#tunnel.receive(this.#wrapped)
        this.#wrapped = Buffer.alloc(0)
        return
      }
      if (this.#wrapped.length < 8) return
      const length = this.#wrapped.readUInt16BE(2)
      if (this.#wrapped.length < length) return
      this.#tunnel.receive(this.#wrapped.subarray(8, length))
      this.#wrapped = this.#wrapped.subarray(length)
    }
  }

  #packets(bytes: Buffer): void {
    let rest = Buffer.concat([this.#plain, bytes])
    while (rest.length >= 8) {
      const length = rest.readUInt16BE(2)
      if (length < 8) {
        this.#raw.destroy()
        return
      }
      if (rest.length < length) break
      const [type = 0, status = 0] = rest
      this.#parts.push(rest.subarray(8, length))
      rest = rest.subarray(length)
      if ((status & 1) === 0) continue
      const body = Buffer.concat(this.#parts)
      this.#parts = []
      this.#plain = Buffer.alloc(0)
      const wasPlain = this.#tunnel === undefined
      this.#handle(type, body, (status & 0x08) !== 0)
      if (wasPlain && this.#tunnel !== undefined) {
        if (rest.length > 0) this.#receive(rest)
        return
      }
    }
    this.#plain = rest
  }

  #handle(type: number, body: Buffer, reset: boolean): void {
    if (type === Tds.packetType.prelogin) this.#prelogin()
    else if (type === Tds.packetType.login) this.#login()
    else if (type === Tds.packetType.attention) this.#attention()
    else if (type === Tds.packetType.batch) this.#batch(body, reset)
    else if (type === Tds.packetType.rpc)
      this.#statement({ kind: "rpc", sql: statementOf(body), body, reset })
  }

  #prelogin(): void {
    this.#note("prelogin")
    if (this.#drops("prelogin")) return
    const { encryption = 2, prelogin } = this.#script
    if (prelogin === "silence") return
    this.#write(Tds.message(prelogin ?? preloginAnswer(encryption)))
    if (prelogin === undefined && (encryption === 1 || encryption === 3)) this.#startTls()
  }

  #login(): void {
    this.#note("login")
    if (this.#drops("login")) return
    const { login } = this.#script
    if (login === "silence") return
    if (Buffer.isBuffer(login)) this.#write(Tds.message(login))
    else if (login !== undefined)
      this.#write(Tds.message(Buffer.concat([...login.map(Tds.error), Tds.done(Tds.doneStatus.error)])))
    else
      void Promise.resolve(this.#script.awaitLogin?.()).then(() =>
        this.#write(Tds.message(Buffer.concat([Tds.loginAck(), Tds.done()])))
      )
  }

  #attention(): void {
    this.#note("attention")
    if (this.#script.ignoreAttention === true) return
    const stop = this.#stop
    this.#stop = undefined
    if (stop === undefined) this.#acknowledge()
    else stop()
  }

  #acknowledge(): void {
    this.#write(Tds.message(Tds.done(Tds.doneStatus.attention)))
  }

  #batch(body: Buffer, reset: boolean): void {
    const sql = body.toString("utf16le", body.readUInt32LE(0))
    if (sql.includes("@@TRANCOUNT > 0")) {
      this.#note("end")
      if (this.#drops("end")) return
      const depth = Tds.row([Tds.intValue(this.#script.depth ?? 1)])
      this.#write(
        Tds.message(Buffer.concat([Tds.columns([Tds.intColumn("")]), depth, Tds.done(0x11, 1n), Tds.done()]))
      )
    } else if (sql.includes("BEGIN TRANSACTION")) {
      this.#note(reset ? "begin reset" : "begin")
      if (this.#drops("begin")) return
      if (this.#script.begin === undefined) this.#write(Tds.message(Tds.done()))
      else this.#script.begin(this.#reply(), sql)
    } else if (sql.startsWith("SET ANSI_NULLS")) {
      this.#note("session")
      if (this.#drops("session")) return
      this.#write(Tds.message(Tds.done()))
    } else {
      this.#statement({ kind: "batch", sql, body, reset })
    }
  }

  #statement(call: Call): void {
    this.#note(`statement ${call.sql.slice(0, 60)}`)
    if (this.#drops("statement")) return
    const { statement } = this.#script
    if (statement === undefined) this.#write(Tds.message(oneRow))
    else void Promise.resolve(statement(call, this.#reply()))
  }

  /** Whatever the script does, a statement that was stopped ends its message, and the stop is acknowledged after it. */
  #reply(): Reply {
    let unfinished = true
    let stoppedNow = false
    let resolve: () => void = () => {}
    const stopped = new Promise<void>((done) => {
      resolve = done
    })
    this.#stop = () => {
      stoppedNow = true
      if (unfinished) this.#write(Tds.message(Tds.done()))
      unfinished = false
      this.#acknowledge()
      resolve()
    }
    return {
      stopped,
      isStopped: () => stoppedNow || this.#raw.destroyed,
      send: (...tokens) => {
        if (stoppedNow) return
        unfinished = false
        this.#stop = undefined
        this.#write(Tds.message(Buffer.concat(tokens)))
      },
      part: async (...tokens) => {
        if (stoppedNow || this.#raw.destroyed) return
        const more = this.#write(Tds.message(Buffer.concat(tokens), { last: false }))
        if (!more) await Promise.race([once(this.#stream, "drain"), once(this.#raw, "close"), stopped])
        else await new Promise((next) => setImmediate(next))
      },
      raw: (bytes) => {
        this.#write(bytes)
      },
      drop: () => {
        this.#raw.destroy()
      }
    }
  }

  #write(bytes: Buffer): boolean {
    return this.#raw.destroyed ? false : this.#stream.write(bytes)
  }

  #note(what: string): void {
    this.#server.note(
      `${what.split(" ")[0]} ${this.#id}${what.includes(" ") ? ` ${what.slice(what.indexOf(" ") + 1)}` : ""}`
    )
  }
}

class Listener {
  script: Script
  readonly log: Array<string> = []
  readonly sockets = new Set<net.Socket>()
  #watchers: Array<() => void> = []
  #connections = 0

  constructor(script: Script) {
    this.script = script
  }

  note(entry: string): void {
    this.log.push(entry)
    for (const watch of this.#watchers) watch()
  }

  accept(socket: net.Socket): void {
    const id = ++this.#connections
    this.sockets.add(socket)
    socket.on("close", () => {
      this.sockets.delete(socket)
      this.note(`close ${id}`)
    })
    this.note(`connect ${id}`)
    if (this.script.drop?.("accept", id) === true) socket.destroy()
    else new Session(id, socket, this)
  }

  seen(pattern: RegExp, count: number): Promise<void> {
    return new Promise((resolve) => {
      const check = () => {
        if (this.log.filter((entry) => pattern.test(entry)).length < count) return
        this.#watchers = this.#watchers.filter((watch) => watch !== check)
        resolve()
      }
      this.#watchers.push(check)
      check()
    })
  }
}

/** Listens on a free port of this machine until the scope ends. */
export const start = (script: Script = {}): Effect.Effect<TdsServer, never, Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.async<{ listener: Listener; server: net.Server; port: number }>((resume) => {
        const listener = new Listener(script)
        const server = net.createServer((socket) => listener.accept(socket))
        server.listen(0, "127.0.0.1", () => {
          const address = server.address()
          const port = address !== null && typeof address === "object" ? address.port : 0
          resume(Effect.succeed({ listener, server, port }))
        })
      }),
      ({ listener, server }) =>
        Effect.async<void>((resume) => {
          for (const socket of listener.sockets) socket.destroy()
          server.close(() => resume(Effect.void))
        })
    ),
    ({ listener, port }): TdsServer => ({
      port,
      log: listener.log,
      open: () => listener.sockets.size,
      get script() {
        return listener.script
      },
      use: (next) => {
        listener.script = next
      },
      dropAll: () => {
        for (const socket of listener.sockets) socket.destroy()
      },
      seen: (pattern, count = 1) => listener.seen(pattern, count)
    })
  )
