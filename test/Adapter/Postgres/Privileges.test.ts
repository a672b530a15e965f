import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { privilegesOf } from "../../../src/Adapter/Postgres/Privileges.js"

const reader = {
  super: false,
  rolcreaterole: false,
  rolcreatedb: false,
  rolreplication: false,
  rolbypassrls: false,
  roles: [],
  create_schemas: false,
  create_in: [],
  writable_count: 0,
  writable: [],
  owned_count: 0,
  owned: [],
  readable: ["sales"],
  database: "crm"
}

describe("privileges", () => {
  it.effect("of a login that may only read: none, and no other login is needed", () =>
    Effect.map(privilegesOf(JSON.stringify(reader)), (told) =>
      expect(told).toEqual({ excessPrivileges: [], leastPrivilege: [] })
    )
  )

  it.effect("beyond reading come with the statements for a login without them", () =>
    Effect.map(
      privilegesOf(JSON.stringify({ ...reader, writable_count: 7, writable: ["sales.orders"] })),
      ({ excessPrivileges, leastPrivilege }) => {
        expect(excessPrivileges).toEqual(["may write sales.orders and 6 more"])
        expect(leastPrivilege).toContain("GRANT USAGE ON SCHEMA sales TO mcp_query_reader")
      }
    )
  )

  it.effect.each([undefined, null, "", "{}", JSON.stringify({ ...reader, roles: "pg_maintain" })])(
    "that do not decode are a failure: %j",
    (json) =>
      Effect.map(Effect.flip(privilegesOf(json)), (failure) =>
        expect(failure).toMatchObject({ _tag: "QueryFailed", reason: "engine_error" })
      )
  )
})
