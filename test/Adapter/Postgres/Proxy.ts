/** A proxy on loopback that delays, holds or cuts what passes. */
import { connect, createServer, type Socket } from "node:net"
import * as Effect from "effect/Effect"
import type { Scope } from "effect/Scope"

export interface Proxy {
  readonly port: number
  /** Ends every connection without a word. */
  readonly cut: () => void
  /** Lets this many more bytes pass from the server, then ends the connection. */
  readonly cutAfter: (bytes: number) => void
  readonly open: () => number
}

export const make = (
  target: number,
  delayMs = 0,
  /** What is answered to a client's first bytes instead of passing them on, if anything. */
  refuse: (first: Buffer) => Buffer | null = () => null
): Effect.Effect<Proxy, never, Scope> =>
  Effect.acquireRelease(
    Effect.promise(
      () =>
        new Promise<Proxy & { readonly close: () => void }>((resolve) => {
          const sockets = new Set<Socket>()
          let left = Number.POSITIVE_INFINITY
          const cut = () => {
            for (const socket of sockets) socket.destroy()
          }
          const listener = createServer((client) => {
            let begun = false
            const server = connect(target, "127.0.0.1")
            for (const [from, to] of [
              [client, server],
              [server, client]
            ] as const) {
              sockets.add(from)
              from.setNoDelay(true)
              from.on("error", () => {})
              from.on("close", () => {
                sockets.delete(from)
                to.destroy()
              })
              from.on("data", (chunk) => {
                if (from === client && !begun) {
                  begun = true
                  const answer = refuse(chunk)
                  if (answer !== null) return client.end(answer)
                }
                if (from === server) {
                  left -= chunk.length
                  if (left < 0) return cut()
                }
                if (delayMs === 0) to.write(chunk)
                else setTimeout(() => to.write(chunk), delayMs)
              })
            }
          })
          listener.listen(0, "127.0.0.1", () => {
            const address = listener.address()
            resolve({
              port: address !== null && typeof address === "object" ? address.port : 0,
              cut,
              cutAfter: (bytes) => {
                left = bytes
              },
              open: () => sockets.size,
              close: () => {
                cut()
                listener.close()
              }
            })
          })
        })
    ),
    ({ close }) => Effect.sync(close)
  )
