/**
 * The driver's edge: one statement in one round trip, its rows handed out as they arrive, as text.
 *
 * Everything that is not in the driver's documentation stands here: how a query is sent and told of its messages, and
 * how a connection's bytes are counted before they are parsed.
 */
import { EventEmitter } from "node:events"
import type { ConnectionOptions } from "node:tls"
import * as Redacted from "effect/Redacted"
import pg from "pg"

/** The largest message that is read from the engine, in bytes: one row, with all its values. */
export const maxMessageBytes = 32 * 1_048_576

/**
 * After the answer is full: what is still read, in bytes and milliseconds, in the hope that the engine has little left.
 * Beyond it the connection is given up.
 */
const drain = { bytes: 256 * 1024, millis: 50 }

/** Where a session is opened, and how. */
export interface Target {
  readonly host: string
  readonly port: number
  /** Null: no TLS. */
  readonly tls: ConnectionOptions | null
  readonly direct: boolean
}

export interface Login {
  readonly user: string
  readonly database: string
  readonly password: Redacted.Redacted<string> | undefined
  readonly applicationName: string
  /** Settings of the session; empty: none. */
  readonly options: string
  readonly connectTimeoutMs: number
  readonly channelBinding: boolean
}

const header = 5

/**
 * Follows the boundaries of messages in a stream, so that a message that is too large is seen by its announced length,
 * before a byte of it is kept.
 */
export class Frames {
  /** Bytes of the current message that are still to come. */
  #rest = 0
  readonly #head = Buffer.alloc(header)
  #headLength = 0

  /** The announced length of a message beyond `limit` that begins in this chunk, or null. */
  tooLarge(chunk: Uint8Array, limit: number): number | null {
    let at = 0
    while (at < chunk.length) {
      if (this.#rest > 0) {
        const step = Math.min(this.#rest, chunk.length - at)
        this.#rest -= step
        at += step
        continue
      }
      const taken = chunk.subarray(at, at + header - this.#headLength)
      this.#head.set(taken, this.#headLength)
      this.#headLength += taken.length
      at += taken.length
      if (this.#headLength < header) break
      const length = this.#head.readUInt32BE(1)
      this.#headLength = 0
      this.#rest = length - 4
      if (length > limit) return length
    }
    return null
  }
}

class CountedConnection extends pg.Connection {
  /** Set when the connection was given up because of a message beyond {@link maxMessageBytes}. */
  oversized = false
  /** The session's parameters that the engine reports by itself. */
  readonly parameters = new Map<string, string>()

  attachListeners(stream: EventEmitter): void {
    const counted = new EventEmitter()
    const frames = new Frames()
    stream.on("data", (chunk: Buffer) => {
      if (this.oversized) return
      if (frames.tooLarge(chunk, maxMessageBytes) === null) {
        counted.emit("data", chunk)
      } else {
        this.oversized = true
        this.stream.destroy()
      }
    })
    stream.on("end", () => counted.emit("end"))
    this.on("parameterStatus", (message: { parameterName: string; parameterValue: string }) => {
      this.parameters.set(message.parameterName, message.parameterValue)
    })
    // Not in the driver's published types.
    Reflect.apply(Reflect.get(pg.Connection.prototype, "attachListeners"), this, [counted])
  }
}

/** A session of the engine, as the pool keeps it. */
export class Session extends pg.Client {
  declare readonly processID: number | null
  declare readonly secretKey: number | null
  declare readonly connectionParameters: { options: string | undefined }
  readonly target: Target
  readonly #counted: CountedConnection

  constructor(target: Target, login: Login) {
    const sslNegotiation: "direct" | "postgres" = target.direct && target.tls !== null ? "direct" : "postgres"
    const wire = {
      keepAlive: true,
      keepAliveInitialDelayMillis: 30_000,
      ssl: target.tls ?? false,
      sslNegotiation
    }
    const connection = new CountedConnection(wire)
    const config = {
      connection,
      host: target.host,
      port: target.port,
      user: login.user,
      database: login.database,
      // A function, so that the driver looks neither into the environment nor into a password file.
      password: () => (login.password === undefined ? "" : Redacted.value(login.password)),
      ssl: target.tls ?? false,
      sslnegotiation: sslNegotiation,
      application_name: login.applicationName,
      options: login.options,
      connectionTimeoutMillis: login.connectTimeoutMs,
      enableChannelBinding: login.channelBinding && target.tls !== null,
      pipeline: true
    }
    super(config)
    // Where none are given, the driver looks into the environment.
    if (login.options === "") this.connectionParameters.options = undefined
    this.target = target
    this.#counted = connection
    // A session may end at any moment, also while it changes hands; whoever uses it next hears of it by its answer.
    this.on("error", () => {})
  }

  get oversized(): boolean {
    return this.#counted.oversized
  }

  parameter(name: string): string | undefined {
    return this.#counted.parameters.get(name)
  }

  /** Ends the connection without a word. */
  destroy(): void {
    this.connection.stream.destroy()
  }
}

/** Takes what a statement answers. A callback that returns false wants no more. */
export interface Sink {
  readonly columns: (fields: ReadonlyArray<pg.FieldDef>) => void
  readonly row: (values: ReadonlyArray<string | null>) => boolean
}

export interface StatementText {
  readonly text: string
  readonly values: ReadonlyArray<string | null>
  /** At most this many rows are taken; 0: only parsed, never executed. */
  readonly rows: number
  /**
   * Its parameters get no values at all, which `EXPLAIN (GENERIC_PLAN)` wants and the extended protocol cannot say. The
   * simple protocol can, but takes several statements and any number of rows: only for a text of which the engine has
   * already said, by the extended protocol, that it is one statement.
   */
  readonly unbound?: boolean
}

/** How a statement ended. */
export type Outcome =
  /** All wanted rows have been handed out. `reusable`: the session is as it was. */
  | { readonly _tag: "Completed"; readonly reusable: boolean }
  /** The engine refused it, and the session goes on. */
  | { readonly _tag: "Refused"; readonly error: unknown; readonly reusable: boolean }
  /** The session ended. */
  | { readonly _tag: "Lost"; readonly error: unknown; readonly rows: number }
  /** Full before the engine had sent everything: the session still works on it. */
  | { readonly _tag: "Abandoned" }
  | { readonly _tag: "Oversized" }
  /** A fault of our own while a row was taken. */
  | { readonly _tag: "Faulty"; readonly defect: unknown }

class Statement extends pg.Query {
  complete = false
  rows = 0
  readonly #statement: StatementText
  readonly #sink: Sink
  readonly #settle: (error: unknown) => void
  readonly #abandon: (defect?: { readonly defect: unknown }) => void
  #full = false
  #passedOver = 0

  constructor(
    statement: StatementText,
    sink: Sink,
    settle: (error: unknown) => void,
    abandon: (defect?: { readonly defect: unknown }) => void
  ) {
    super(statement.text)
    this.#statement = statement
    this.#sink = sink
    this.#settle = settle
    this.#abandon = abandon
  }

  // The extended protocol, with the one exception: it carries one statement, and takes a number of rows.
  override submit = (connection: pg.Connection) => {
    const { text, values, rows, unbound } = this.#statement
    if (unbound === true) {
      connection.query(text)
      return null
    }
    connection.stream.cork()
    try {
      connection.parse({ name: "", text, types: [] }, true)
      if (rows > 0) {
        connection.bind({ portal: "", statement: "", values: [...values] }, true)
        connection.describe({ type: "P", name: "" }, true)
        connection.execute({ portal: "", rows: String(rows) }, true)
      }
      connection.sync()
    } finally {
      connection.stream.uncork()
    }
    return null
  }

  handleRowDescription({ fields }: { readonly fields: ReadonlyArray<pg.FieldDef> }): void {
    this.#take(() => {
      this.#sink.columns(fields)
      return true
    }, 0)
  }

  handleDataRow({
    fields,
    length
  }: {
    readonly fields: ReadonlyArray<string | null>
    readonly length?: number
  }): void {
    this.rows++
    this.#take(() => this.#sink.row(fields), length ?? 0)
  }

  /** What is thrown in here would surface in the socket, where nobody can tell whose it is. */
  #take(hand: () => boolean, bytes: number): void {
    if (this.#full) {
      this.#passedOver += bytes
      if (this.#passedOver > drain.bytes) this.#abandon()
      return
    }
    try {
      if (hand()) return
      this.#full = true
      setTimeout(() => this.#abandon(), drain.millis).unref()
    } catch (defect) {
      this.#full = true
      this.#abandon({ defect })
    }
  }

  handlePortalSuspended(): void {
    this.complete = true
  }

  handleCommandComplete(): void {
    this.complete = true
  }

  handleEmptyQuery(): void {
    this.complete = true
  }

  handleError(error: unknown): void {
    this.#settle(error)
  }

  handleReadyForQuery(): void {
    this.complete = true
    this.#settle(undefined)
  }
}

/** Commands around a statement. The first of `after` tells, by its answer, that the session goes on. */
export interface Frame {
  readonly before: string
  readonly after: readonly [string, ...ReadonlyArray<string>]
}

/**
 * Runs one statement between the commands of its frame in one round trip: nothing waits for an answer. Each is written
 * by itself, so that the engine has begun with the first while the others are still made; a burst held back until it is
 * whole takes a fifth longer. `finish` is called once.
 */
export const run = (
  session: Session,
  { before, after: [first, ...others] }: Frame,
  statement: StatementText,
  sink: Sink,
  finish: (outcome: Outcome, millis: number) => void
): void => {
  const from = performance.now()
  let beforeError: unknown
  let statementError: unknown
  let alive = false
  let clean = true
  let done = false
  const end = (outcome: Outcome) => {
    if (done) return
    done = true
    finish(outcome, performance.now() - from)
  }
  const query = new Statement(
    statement,
    sink,
    (error) => {
      statementError = error
    },
    (fault) => end(fault === undefined ? { _tag: "Abandoned" } : { _tag: "Faulty", defect: fault.defect })
  )
  const conclude = () => {
    const reusable = alive && clean
    const error = beforeError ?? statementError
    if (!error || (query.complete && !alive)) end({ _tag: "Completed", reusable })
    else if (alive) end({ _tag: "Refused", error, reusable })
    else if (session.oversized) end({ _tag: "Oversized" })
    else end({ _tag: "Lost", error, rows: query.rows })
  }
  let awaited = 0
  const send = (text: string, answered: (error: unknown) => void) => {
    awaited++
    session.query(
      new pg.Query(text, (error) => {
        answered(error ?? undefined)
        // A lost connection answers every command with its error, in order.
        if (--awaited === 0) conclude()
      })
    )
  }
  send(before, (error) => {
    beforeError = error
  })
  session.query(query)
  send(first, (error) => {
    alive = error === undefined
  })
  for (const text of others) {
    send(text, (error) => {
      clean &&= error === undefined
    })
  }
}
