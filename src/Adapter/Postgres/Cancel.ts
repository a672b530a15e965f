/** Asks the engine to stop what a session is doing, over a connection of its own, as the protocol wants it. */
import { connect, type Socket } from "node:net"
import { connect as connectTls } from "node:tls"
import * as Effect from "effect/Effect"
import type { Session, Target } from "./Wire.js"

/** The engine answers by closing the connection, once it has passed the request on. */
const patienceMillis = 400

const sslRequest = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f])

const cancelRequest = (processId: number, secretKey: number): Buffer => {
  const request = Buffer.alloc(16)
  request.writeInt32BE(16, 0)
  request.writeInt32BE(80_877_102, 4)
  request.writeInt32BE(processId, 8)
  request.writeInt32BE(secretKey, 12)
  return request
}

const dial = ({ host, port }: Target, address: unknown): Socket =>
  host.startsWith("/")
    ? connect(`${host}/.s.PGSQL.${port}`)
    : connect(port, typeof address === "string" ? address : host)

/**
 * Sends the request and waits until the engine has taken it, but never long. It cannot fail: where the server cannot be
 * reached, the session's own connection is lost as well.
 */
export const cancel = (session: Session): Effect.Effect<void> => {
  // The very server that the session is on: its name may stand for several. Asked now, while it is connected.
  const address: unknown = Reflect.get(session.connection.stream, "remoteAddress")
  return Effect.async<void>((resume) => {
    const { processID, secretKey } = session
    if (processID === null || secretKey === null) return resume(Effect.void)
    const { host, tls, direct } = session.target
    const plain = dial(session.target, address)
    const request = cancelRequest(processID, secretKey)
    const finish = () => {
      clearTimeout(patience)
      plain.destroy()
      resume(Effect.void)
    }
    const patience = setTimeout(finish, patienceMillis)
    const secure = () => {
      const socket = connectTls({
        ...tls,
        socket: plain,
        host,
        ...(/^[\d.]+$|:/.test(host) ? {} : { servername: host }),
        ...(direct ? { ALPNProtocols: ["postgresql"] } : {})
      })
      socket.on("error", finish).on("close", finish)
      socket.once("secureConnect", () => socket.write(request))
    }
    plain.on("error", finish).on("close", finish)
    plain.once("connect", () => {
      if (tls === null) plain.write(request)
      else if (direct) secure()
      else {
        plain.write(sslRequest)
        plain.once("data", (answer) => (answer.toString("latin1") === "S" ? secure() : finish()))
      }
    })
    return Effect.sync(finish)
  })
}
