import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import { Ajv } from "ajv"
import { configSchema } from "../../scripts/ConfigSchema.js"

const file = new URL("../../mcp-query.schema.json", import.meta.url)
const validate = new Ajv({ strict: false }).compile(JSON.parse(configSchema()))

describe("the config file's JSON Schema", () => {
  it("is fresh (npm run docs:config)", () => {
    expect(readFileSync(file, "utf8")).toBe(configSchema())
  })

  it("takes what the program takes, and refuses what it refuses", () => {
    const variable = (name: string) => `$\{${name}}`
    const sources = {
      shop: { engine: "sqlite", file: "./shop.db" },
      crm: { engine: "postgres", url: variable("CRM_URL"), limits: { maxRows: 200 } },
      erp: { engine: "mssql", host: "erp.local", user: "reader", password: variable("PW"), encrypt: true }
    }
    expect(validate({ $schema: "x", sources, limits: { maxRows: 10 } })).toBe(true)
    expect(validate({ sources, bogus: 1 })).toBe(false)
    expect(validate({ sources: { Shop: sources.shop } })).toBe(false)
    expect(validate({ sources: { shop: { engine: "sqlite", fil: "./shop.db" } } })).toBe(false)
    expect(validate({ sources, limits: { maxRows: 0 } })).toBe(false)
  })
})
