import { once } from "node:events"
import { createServer, type Socket } from "node:net"
import { afterEach, describe, expect, it, vi } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import { check } from "../../src/Cli/Check.js"
import { exitCode } from "../../src/FatalError.js"
import { load } from "../../src/Settings.js"

afterEach(() => void vi.restoreAllMocks())

const message = (type: string, body: Buffer) => {
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeUInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

/** Logs anybody in to PostgreSQL, and says nothing more. `asked` is done once a login has sent a statement. */
const stalled = Effect.acquireRelease(
  Effect.promise(async () => {
    const sockets = new Set<Socket>()
    let ask = () => {}
    const asked = new Promise<void>((resolve) => {
      ask = resolve
    })
    const server = createServer((socket) => {
      sockets.add(socket)
      socket.on("error", () => {})
      socket.once("data", () => {
        socket.write(
          Buffer.concat([
            message("R", Buffer.alloc(4)),
            message("K", Buffer.alloc(8)),
            message("Z", Buffer.from("I"))
          ])
        )
        socket.once("data", ask)
      })
    }).listen(0, "127.0.0.1")
    await once(server, "listening")
    const address = server.address()
    const port = typeof address === "object" ? address?.port : undefined
    return { server, sockets, asked, url: `postgres://u@127.0.0.1:${port}/db?sslmode=disable` }
  }),
  ({ server, sockets }) =>
    Effect.sync(() => {
      for (const socket of sockets) socket.destroy()
      server.close()
    })
)

describe("check", () => {
  it.scoped("ends, also where a source stalls after its login", () =>
    Effect.gen(function* () {
      const write = vi.spyOn(process.stdout, "write").mockReturnValue(true)
      const { asked, url } = yield* stalled
      const settings = yield* load({ sources: [], config: undefined, environment: { DATABASE_URL: url } })
      const fiber = yield* Effect.fork(check(settings, { json: true }))
      yield* Effect.promise(() => asked)
      yield* TestClock.adjust("1 minute")
      expect(yield* Fiber.join(fiber)).toBe(exitCode.failed)
      expect(JSON.parse(String(write.mock.calls[0]?.[0]))).toMatchObject({
        sources: [{ id: "db", failure: { reason: "timeout" } }]
      })
    })
  )
})
