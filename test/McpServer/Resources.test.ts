/** The schema as MCP resources of the running server. */
import { randomBytes } from "node:crypto"
import { join } from "node:path"
import { ErrorCode, McpError } from "@modelcontextprotocol/sdk/types.js"
import { beforeAll, describe, expect, it } from "vitest"
import { connect, type TestClient } from "../support/Client.js"
import { fill, folder } from "../support/Folder.js"
import { objectOf, schemaOf } from "../support/Schema.js"

const place = folder()
const shop = fill(
  join(place, "shop.db"),
  "create table orders (id integer primary key)",
  'create table "Order Items/old" (id int)'
)
const secret = randomBytes(9).toString("hex")

let client: TestClient
beforeAll(async () => {
  client = await connect([`shop=${shop}`, `gone=${join(place, "gone.db")}`, "crm=env:CRM"], {
    env: { CRM: `postgres://reader:${secret}@127.0.0.1:1/crm` }
  })
})

const read = async (uri: string) => {
  const { contents } = await client.client.readResource({ uri })
  expect(contents).toEqual([{ uri, mimeType: "application/json", text: expect.any(String) }])
  const [content] = contents
  return JSON.parse(String(content !== undefined && "text" in content ? content.text : ""))
}

const failure = async (uri: string) => {
  try {
    await client.client.readResource({ uri })
  } catch (error) {
    if (error instanceof McpError) return error
  }
  throw new Error("A resource was read.")
}

describe("resources", () => {
  it("are listed, a source each, and as templates", async () => {
    expect(client.client.getServerCapabilities()?.resources).toEqual({})
    const { resources } = await client.client.listResources()
    expect(resources.map(({ uri }) => uri)).toEqual([
      "mcp-query://shop/schema",
      "mcp-query://gone/schema",
      "mcp-query://crm/schema"
    ])
    const { resourceTemplates } = await client.client.listResourceTemplates()
    expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toContain(
      "mcp-query://shop/schema/{name}"
    )
  })

  it("hold what the tool tells", async () => {
    expect(await read("mcp-query://shop/schema")).toEqual(
      schemaOf(await client.call("schema", { source: "shop" }))
    )
    expect(await read("mcp-query://shop/schema/orders")).toEqual(
      schemaOf(await client.call("schema", { source: "shop", name: "orders", detail: "full" }))
    )
  })

  it("name any object by its encoded name", async () => {
    const name = encodeURIComponent("Order Items/old")
    const value = await read(`mcp-query://shop/schema/${name}`)
    expect(objectOf(value).name).toBe('"Order Items/old"')
  })

  it("that do not exist are protocol errors", async () => {
    for (const uri of [
      "mcp-query://none/schema",
      "mcp-query://shop",
      "mcp-query://shop/rows",
      "mcp-query://shop/schema/%E0%A4%A",
      "file:///etc/passwd"
    ])
      expect((await failure(uri)).code).toBe(-32002)
    const error = await failure("mcp-query://shop/schema/order")
    expect(error.code).toBe(-32002)
    expect(error.data).toMatchObject({ reason: "unknown_table", hint: expect.stringContaining("orders") })
  })

  it("that cannot be read are protocol errors without a secret", async () => {
    const gone = await failure("mcp-query://gone/schema")
    expect(gone.code).toBe(ErrorCode.InternalError)
    expect(gone.data).toMatchObject({ category: "connection_failed", reason: "file_not_found" })
    expect(JSON.stringify([gone.message, gone.data])).not.toContain(place)
    const crm = await failure("mcp-query://crm/schema")
    expect(crm.data).toMatchObject({ category: "connection_failed", reason: "refused" })
    expect(JSON.stringify([crm.message, crm.data])).not.toMatch(
      new RegExp(`${secret}|127\\.0\\.0\\.1|reader`)
    )
  })

  it("are read as calls of the tool, one line of the log each", async () => {
    const before = client.log.filter(({ event }) => event === "tool_call").length
    await read("mcp-query://shop/schema/orders")
    const lines = client.log.filter(({ event }) => event === "tool_call").slice(before)
    expect(lines).toMatchObject([{ tool: "schema", source: "shop", outcome: "succeeded" }])
  })
})
