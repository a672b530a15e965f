/**
 * The driver's edge: a tedious connection that never goes on in plaintext when encryption was asked for, that reads rows
 * through {@link TokenReader}, and that turns bytes it cannot read into the loss of the connection, where the driver
 * would end the process.
 */
import { isIP, type Socket } from "node:net"
import { checkServerIdentity } from "node:tls"
import { Connection, type ConnectionConfiguration } from "tedious"
import type { TokenHandler } from "tedious/lib/token/handler.js"
import type { Parser as TokenStreamParser } from "tedious/lib/token/token-stream-parser.js"
import { connectAs, type OwnerToken } from "../Owner.js"
import { readPrelogin } from "./Prelogin.js"
import { sessionOptions } from "./SessionSql.js"
import { TokenReader, TokenStream } from "./TokenReader.js"

type IncomingMessage = Parameters<Connection["createTokenStreamParser"]>[0]

/** A fault met before the login, with a code that the failure table knows. */
class HandshakeFault extends Error {
  constructor(
    readonly code: string,
    message: string
  ) {
    super(message)
  }
}

const asError = (fault: unknown) => (fault instanceof Error ? fault : new Error(String(fault)))

/** Bytes kept of a value at least, whatever an answer may show: a hierarchyid is read whole. */
const leastKept = 16_384

/** Authentications that go on with a token exchange behind the login. */
const federated: ReadonlySet<string> = new Set([
  "token-credential",
  "azure-active-directory-password",
  "azure-active-directory-msi-vm",
  "azure-active-directory-msi-app-service",
  "azure-active-directory-service-principal-secret",
  "azure-active-directory-default"
])

export class Wire extends Connection {
  /** The largest cell that the running statement may show; twice as much is held of a value, for UTF-16. */
  maxCellBytes = 0
  /** Called when the running statement has ended, whatever it came to. */
  quiet: () => void = () => {}
  #encrypted = false
  readonly #givenUp = new AbortController()
  readonly #owner: OwnerToken | undefined

  override STATE: Connection["STATE"] = {
    ...Connection.prototype.STATE,
    SENT_PRELOGIN: {
      ...Connection.prototype.STATE.SENT_PRELOGIN,
      enter: () => {
        void this.#negotiate()
      }
    }
  }

  constructor(config: ConnectionConfiguration, owner?: OwnerToken) {
    super(config)
    this.#owner = owner
    // Without a listener, the driver's errors on an idle connection would end the process.
    this.on("error", () => {})
  }

  get encrypted(): boolean {
    return this.#encrypted
  }

  /** Whether a statement can be sent. */
  get idle(): boolean {
    return !this.closed && this.state === this.STATE.LOGGED_IN
  }

  /** Each state waits for the engine in promises of its own, which nobody catches: they are the owner's as well. */
  override transitionTo(state: Connection["state"]): void {
    connectAs(this.#owner, () => super.transitionTo(state))
  }

  /** A write that fails is told where it was begun. */
  override makeRequest(...request: Parameters<Connection["makeRequest"]>): void {
    connectAs(this.#owner, () => super.makeRequest(...request))
  }

  override close(): void {
    super.close()
    this.#givenUp.abort()
  }

  /** The driver would go on with a connection that stands only after it was closed, and log in for nobody. */
  override createConnectTimer(): AbortSignal {
    return AbortSignal.any([super.createConnectTimer(), this.#givenUp.signal])
  }

  override socketHandlingForSendPreLogin(socket: Socket): void {
    if (this.#givenUp.signal.aborted) socket.destroy()
    else super.socketHandlingForSendPreLogin(socket)
  }

  override getInitialSql(): string {
    return sessionOptions
  }

  override createTokenStreamParser(message: IncomingMessage, handler: TokenHandler): TokenStreamParser {
    const keep = Math.max(leastKept, 2 * this.maxCellBytes + 64)
    const reader = new TokenReader(message, this.debug, this.config.options, keep)
    return new TokenStream(reader, handler, {
      isOver: () => this.state === this.STATE.FINAL,
      fail: (fault) => this.socketError(fault)
    })
  }

  /** The driver's own handshake goes on in plaintext where the server offers no encryption. */
  async #negotiate(): Promise<void> {
    try {
      const pieces: Array<Buffer> = []
      for await (const piece of await this.messageIo.readMessage()) pieces.push(piece)
      const answer = readPrelogin(Buffer.concat(pieces))
      this.fedAuthRequired = answer.fedAuthRequired
      await this.#secure(answer.encrypts)
      if (this.closed) return
      this.sendLogin7Packet()
      this.transitionTo(this.#loginState())
    } catch (fault) {
      if (!this.closed) this.socketError(asError(fault))
    }
  }

  async #secure(encrypts: boolean): Promise<void> {
    const { encrypt } = this.config.options
    if (encrypt === "strict") {
      this.#encrypted = true
      return
    }
    if (encrypts !== Boolean(encrypt))
      throw new HandshakeFault(
        "EENCRYPT",
        encrypts ? "The server requires encryption" : "The server offers no encryption"
      )
    if (encrypts) await this.#startTls()
    this.#encrypted = encrypts
  }

  async #startTls(): Promise<void> {
    const { serverName, trustServerCertificate } = this.config.options
    const name = serverName ?? this.routingData?.server ?? this.config.server
    this.transitionTo(this.STATE.SENT_TLSSSLNEGOTIATION)
    // An address is no server name in TLS: it is checked here, against the addresses in the certificate.
    const address = isIP(name) !== 0
    await this.messageIo.startTls(
      this.secureContextOptions,
      address ? "" : name,
      trustServerCertificate || address
    )
    if (address && !trustServerCertificate) this.#checkAddress(name)
  }

  #checkAddress(address: string): void {
    const cleartext = this.messageIo.securePair?.cleartext
    if (cleartext === undefined) throw new HandshakeFault("EENCRYPT", "There is no encrypted connection")
    const { authorizationError } = cleartext
    // Node compared the certificate with no name at all, which is the one fault that the check below decides.
    const fault: unknown = authorizationError
    if (fault && fault !== "ERR_TLS_CERT_ALTNAME_INVALID")
      throw new HandshakeFault(String(fault), "The certificate is not trusted")
    const mismatch = checkServerIdentity(address, cleartext.getPeerCertificate(true))
    if (mismatch !== undefined) throw mismatch
  }

  #loginState() {
    const { type } = this.config.authentication
    if (type === "ntlm") return this.STATE.SENT_LOGIN7_WITH_NTLM
    return federated.has(type)
      ? this.STATE.SENT_LOGIN7_WITH_FEDAUTH
      : this.STATE.SENT_LOGIN7_WITH_STANDARD_LOGIN
  }
}
