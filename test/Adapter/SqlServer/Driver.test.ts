/** The adapter reads rows and makes connections in the driver's stead; these fail when the driver changes beneath it. */
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { describe, expect, it } from "@effect/vitest"
import { Connection } from "tedious"
import { isOwned } from "../../../src/Adapter/Owner.js"
import { kinds } from "../../../src/Adapter/SqlServer/Value.js"
import { Wire } from "../../../src/Adapter/SqlServer/Wire.js"

const require = createRequire(import.meta.url)

const exact = "18.6.2"

describe("tedious", () => {
  it(`is ${exact}; another version needs these tests, the wire types and a real server first`, () => {
    const installed: { version: string } = require("tedious/package.json")
    expect(installed.version).toBe(exact)
    const own: { dependencies: Record<string, string> } = JSON.parse(
      readFileSync(new URL("../../../package.json", import.meta.url), "utf8")
    )
    expect(own.dependencies["tedious"]).toBe(exact)
  })

  it("has the methods that are replaced or called", () => {
    const parser = require("tedious/lib/token/stream-parser").prototype
    for (const name of [
      "waitForChunk",
      "readToken",
      "readColMetadataToken",
      "readRowToken",
      "readNbcRowToken",
      "readDoneToken"
    ])
      expect(parser[name], name).toBeTypeOf("function")
    const connection: object = Connection.prototype
    for (const name of [
      "createTokenStreamParser",
      "getInitialSql",
      "sendLogin7Packet",
      "socketError",
      "transitionTo",
      "cleanupConnection"
    ])
      expect(Reflect.get(connection, name), name).toBeTypeOf("function")
  })

  it("waits for the engine in the name of whoever made the connection", async () => {
    const owner = { source: "erp", crashed: () => {} }
    const seen: Array<boolean> = []
    await new Promise<void>((resolve) => {
      const wire = new Wire({ server: "unused.example" }, owner)
      const enter = async () => {
        seen.push(isOwned())
        await Promise.resolve()
        seen.push(isOwned())
        resolve()
      }
      wire.transitionTo({ name: "Test", enter: () => void enter(), events: {} })
    })
    expect([...seen, isOwned()]).toEqual([true, true, false])
  })

  it("has the states that a connection goes through", () => {
    expect(Object.keys(Connection.prototype.STATE)).toEqual([
      "INITIALIZED",
      "CONNECTING",
      "SENT_PRELOGIN",
      "REROUTING",
      "TRANSIENT_FAILURE_RETRY",
      "SENT_TLSSSLNEGOTIATION",
      "SENT_LOGIN7_WITH_STANDARD_LOGIN",
      "SENT_LOGIN7_WITH_NTLM",
      "SENT_LOGIN7_WITH_FEDAUTH",
      "LOGGED_IN_SENDING_INITIAL_SQL",
      "LOGGED_IN",
      "SENT_CLIENT_REQUEST",
      "SENT_ATTENTION",
      "FINAL"
    ])
  })

  it("knows the wire types that the value table reads, and no others", () => {
    const types: Record<string, { name: string }> = require("tedious/lib/data-type").TYPE
    const known = new Set(Object.values(types).map(({ name }) => name))
    // Never a column's: a table-valued parameter, and two types of servers before TDS 7.
    for (const name of ["TVP", "Decimal", "Numeric"]) known.delete(name)
    expect([...known].sort()).toEqual(Object.keys(kinds).sort())
  })
})
