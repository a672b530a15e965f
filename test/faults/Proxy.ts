/** A loopback proxy between the server and an engine, which does to their connections what networks do. */
import { createServer, type Server, type Socket, connect as socketTo } from "node:net"
import * as Effect from "effect/Effect"
import type { Scope } from "effect/Scope"

export interface Proxy {
  readonly port: number
  readonly connections: () => number
  /** Resets what is connected. */
  readonly drop: () => void
  /** Nothing listens any more, or something does again. */
  readonly refuse: (refused: boolean) => Effect.Effect<void>
  /** Bytes stay where they are. */
  readonly stall: (stalled: boolean) => void
  /** The next bytes of the engine are not what it sent. */
  readonly corrupt: (bytes: Buffer) => void
}

interface Pair {
  readonly client: Socket
  readonly engine: Socket
}

const listen = (server: Server, port: number) =>
  Effect.async<number>((resume) => {
    server.listen(port, "127.0.0.1", () => {
      const address = server.address()
      resume(Effect.succeed(address !== null && typeof address === "object" ? address.port : 0))
    })
    return Effect.void
  })

const close = (server: Server) =>
  Effect.async<void>((resume) => {
    server.close(() => resume(Effect.void))
    return Effect.void
  })

export const make = (target: {
  readonly host: string
  readonly port: number
}): Effect.Effect<Proxy, never, Scope> =>
  Effect.gen(function* () {
    const pairs = new Set<Pair>()
    let stalled = false
    let garbage: Buffer | undefined

    const accept = (client: Socket) => {
      const pair = { client, engine: socketTo(target) }
      pairs.add(pair)
      const end = () => {
        pairs.delete(pair)
        pair.client.destroy()
        pair.engine.destroy()
      }
      const forward = (from: Socket, to: Socket, change: (bytes: Buffer) => Buffer) =>
        from
          .on("data", (bytes: Buffer) => {
            if (!to.write(change(bytes))) from.pause()
          })
          .on("error", end)
          .on("close", end)
          .on("end", end)
      forward(pair.client, pair.engine, (bytes) => bytes)
      forward(pair.engine, pair.client, (bytes) => {
        const instead = garbage
        garbage = undefined
        return instead === undefined ? bytes : Buffer.concat([instead, bytes])
      })
      pair.client.on("drain", () => stalled || pair.engine.resume())
      pair.engine.on("drain", () => stalled || pair.client.resume())
      if (stalled) for (const socket of [pair.client, pair.engine]) socket.pause()
    }

    let server = createServer(accept)
    const port = yield* listen(server, 0)
    let listening = true
    yield* Effect.addFinalizer(() =>
      Effect.suspend(() => {
        for (const { client, engine } of pairs) {
          client.destroy()
          engine.destroy()
        }
        return listening ? close(server) : Effect.void
      })
    )
    const drop = () => {
      for (const { client, engine } of [...pairs]) {
        client.resetAndDestroy()
        engine.destroy()
      }
    }
    return {
      port,
      connections: () => pairs.size,
      drop,
      refuse: (refused) =>
        Effect.suspend(() => {
          if (refused === !listening) return Effect.void
          listening = !refused
          if (refused) {
            const closed = close(server)
            // A server that still has connections would not be closed.
            return Effect.zipRight(Effect.sync(drop), closed)
          }
          server = createServer(accept)
          return Effect.asVoid(listen(server, port))
        }),
      stall: (on) => {
        stalled = on
        for (const { client, engine } of pairs)
          for (const socket of [client, engine])
            if (on) socket.pause()
            else socket.resume()
      },
      corrupt: (bytes) => {
        garbage = bytes
      }
    }
  })
