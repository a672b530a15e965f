/** Stands between an adapter and its engine, so that a test can cut the connections. */
import * as net from "node:net"
import * as Effect from "effect/Effect"
import type { Scope } from "effect/Scope"

export interface Proxy {
  readonly port: number
  /** Ends every connection, and waits until all are closed. */
  readonly cut: Effect.Effect<void>
}

export const startProxy = (host: string, port: number): Effect.Effect<Proxy, never, Scope> =>
  Effect.gen(function* () {
    const pairs = new Set<net.Socket>()
    const cut = Effect.promise(async () => {
      const open = [...pairs]
      await Promise.all(
        open.map(
          (socket) =>
            new Promise<void>((resolve) => {
              if (socket.closed) resolve()
              else socket.once("close", () => resolve())
              socket.destroy()
            })
        )
      )
    })
    const server = net.createServer((client) => {
      const engine = net.connect(port, host)
      for (const [socket, other] of [
        [client, engine],
        [engine, client]
      ] as const) {
        pairs.add(socket)
        socket.on("error", () => {})
        socket.on("close", () => {
          pairs.delete(socket)
          other.destroy()
        })
        socket.pipe(other)
      }
    })
    const bound = yield* Effect.acquireRelease(
      Effect.async<number>((resume) => {
        server.listen(0, "127.0.0.1", () => {
          const address = server.address()
          resume(Effect.succeed(address !== null && typeof address === "object" ? address.port : 0))
        })
      }),
      () =>
        Effect.zipRight(
          cut,
          Effect.async<void>((resume) => {
            server.close(() => resume(Effect.void))
          })
        )
    )
    return { port: bound, cut }
  })
