import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { ConfigFile, substitute } from "../src/Settings/ConfigFile.js"
import { defaultLimits } from "../src/Settings/Limits.js"
import { load } from "../src/Settings.js"
import { folder } from "./support/Folder.js"

const place = folder()
const home = join(place, "home")
mkdirSync(home)

const settings = (
  sources: ReadonlyArray<string>,
  environment: Record<string, string> = {},
  config?: string
) => load({ sources, config, environment })

const file = (name: string, content: object): string => {
  const path = join(home, name)
  writeFileSync(path, JSON.stringify(content))
  return path
}

/** Where each problem is. */
const places = (content: object, environment: Record<string, string> = {}) =>
  Effect.map(Effect.flip(settings([], environment, file("faulty.json", content))), ({ problems }) =>
    problems.map(({ where }) => where)
  )

const sqlite = { engine: "sqlite", file: "a.db" }

describe("settings", () => {
  it.effect("of an argument: the defaults", () =>
    Effect.map(settings(["shop=./a.db"]), (loaded) => {
      expect(loaded.sources).toMatchObject([{ id: "shop", engine: "sqlite", limits: defaultLimits }])
      expect(loaded.log).toEqual({ level: "info", file: null, arguments: "full" })
      expect(loaded.structuredContent).toBe(true)
      expect(loaded.secrets).toEqual([])
    })
  )

  it.effect("the nearer limit wins", () =>
    Effect.map(
      settings(
        [],
        {},
        file("limits.json", {
          sources: { a: { ...sqlite, limits: { maxRows: 5, maxConcurrent: 2 } }, b: sqlite },
          limits: { maxRows: 7, timeoutMs: 9 }
        })
      ),
      ({ sources: [a, b] }) => {
        expect(a.limits).toEqual({ ...defaultLimits, maxRows: 5, maxConcurrent: 2, timeoutMs: 9 })
        expect(b?.limits).toEqual({ ...defaultLimits, maxRows: 7, timeoutMs: 9 })
        expect(a.config).toMatchObject({ file: join(home, "a.db"), maxConcurrent: 2 })
      }
    )
  )

  it.effect("the time to connect is the one that the source waits", () =>
    Effect.gen(function* () {
      const url = "postgres://h/crm?connect_timeout=20"
      const mssql = "mssql://u:p@h/erp?timeout=20"
      const given = yield* settings([`crm=${url}`, `erp=${mssql}`, "a=a.db"])
      const listed = yield* settings(
        [],
        {},
        file("times.json", {
          sources: {
            crm: { engine: "postgres", url },
            erp: { engine: "mssql", url: mssql },
            near: { engine: "postgres", url, limits: { connectTimeoutMs: 3000 } },
            mine: { engine: "mssql", url: mssql, limits: { connectTimeoutMs: 3000 } },
            fields: { engine: "postgres", host: "h", limits: { connectTimeoutMs: 4000 } },
            a: sqlite
          }
        })
      )
      const times = (all: typeof given) => all.sources.map(({ limits }) => limits.connectTimeoutMs)
      expect(times(given)).toEqual([20_000, 20_000, 5000])
      expect(times(listed)).toEqual([20_000, 20_000, 3000, 3000, 4000, 5000])
      for (const { config, limits } of [...given.sources, ...listed.sources])
        if ("connectTimeoutMs" in config) expect(config.connectTimeoutMs).toBe(limits.connectTimeoutMs)
    })
  )

  it.effect("a log file is looked for beside the config file", () =>
    Effect.map(
      settings([], {}, file("log.json", { sources: { a: sqlite }, log: { file: "calls.jsonl" } })),
      ({ log }) => expect(log.file).toBe(join(home, "calls.jsonl"))
    )
  )

  it.effect("a byte order mark and $schema are taken", () => {
    const path = join(home, "bom.json")
    writeFileSync(path, `\ufeff${JSON.stringify({ $schema: "x.json", sources: { a: sqlite } })}`)
    return Effect.map(settings([], {}, path), ({ sources }) => expect(sources).toHaveLength(1))
  })

  it.effect("passwords are among the secrets", () =>
    Effect.gen(function* () {
      const fromUrl = yield* settings(["env:CRM"], { CRM: "postgres://u:pass%20word@h/crm" })
      expect(fromUrl.secrets).toContain("pass word")
      const fromFile = yield* settings(
        [],
        { PW: "hunter22" },
        file("secrets.json", {
          sources: {
            // biome-ignore lint/suspicious/noTemplateCurlyInString: the config file's own syntax
            erp: { engine: "mssql", host: "h", database: "d", user: "u", password: "${PW}" },
            crm: { engine: "postgres", host: "h", database: "d", user: "u", password: "other33" }
          }
        })
      )
      expect(fromFile.secrets).toEqual(expect.arrayContaining(["hunter22", "other33"]))
    })
  )
})

describe("problems", () => {
  it.effect("bounds of every limit, at the top and in a source", () =>
    Effect.gen(function* () {
      const limits = {
        maxRows: 0,
        maxBytes: 1,
        maxCellBytes: 1,
        timeoutMs: 0,
        connectTimeoutMs: 0,
        maxConcurrent: 0
      }
      expect(yield* places({ sources: { a: { ...sqlite, limits } }, limits })).toEqual(
        expect.arrayContaining([
          ...Object.keys(limits).map((name) => `sources.a.limits.${name}`),
          ...Object.keys(limits).map((name) => `limits.${name}`)
        ])
      )
    })
  )

  it.effect("a missing variable is told where it stands, and once", () =>
    Effect.gen(function* () {
      // biome-ignore-start lint/suspicious/noTemplateCurlyInString: the config file's own syntax
      const content = {
        sources: {
          a: { engine: "sqlite", file: "${A}/${B}.db" },
          b: { ...sqlite, description: "${SET} ${A}" }
        }
      }
      // biome-ignore-end lint/suspicious/noTemplateCurlyInString: as above
      const problems = yield* Effect.map(
        Effect.flip(settings([], { SET: "x" }, file("missing.json", content))),
        (error) => error.problems
      )
      expect(problems.map(({ expected, where }) => [where, expected])).toEqual([
        ["sources.a.file", "the environment variable A"],
        ["sources.a.file", "the environment variable B"],
        ["sources.b.description", "the environment variable A"]
      ])
    })
  )

  it.effect("a value that may be a secret is not repeated, however its key is spelt", () =>
    Effect.gen(function* () {
      // biome-ignore-start lint/suspicious/noTemplateCurlyInString: the config file's own syntax
      const content = {
        sources: {
          a: {
            ...sqlite,
            uri: "postgres://app:hush1@db/crm",
            passwd: "hush2",
            pwd: "${PWX}",
            password: 987654321
          },
          b: { engine: "postgres", host: "h", user: 5, password: 876543219, port: "${PWX}" },
          c: { engine: "postgres", host: "h", port: "postgres://app:hush3@db/crm" },
          d: { engine: "postgres", host: "h", sslmode: "Server=h;Pwd=hush4" },
          e: { engine: "mssql", host: "h", database: "d", nested: { deep: "hush5" }, list: ["hush6"] },
          f: "postgres://app:hush7@db/crm",
          "postgres://app:hush8@db/crm": sqlite
        },
        hush: "${PWX}",
        limits: { maxRows: "${PWX}" },
        log: { level: "loud" }
      }
      // biome-ignore-end lint/suspicious/noTemplateCurlyInString: as above
      const { message } = yield* Effect.flip(settings([], { PWX: "hush9" }, file("hush.json", content)))
      expect(message).not.toMatch(/hush\d|987654321|876543219/)
      for (const where of ["a.uri", "a.passwd", "a.pwd", "a.password", "b.password", "b.port", "c.port", "f"])
        expect(message).toContain(`sources.${where}: `)
      // What is plainly no secret is still told.
      expect(message).toContain('"loud"')
    })
  )

  it.effect("nothing that a variable holds is repeated as a location", () =>
    Effect.gen(function* () {
      const environment = { A: "hush1", DATABASE_URL: "app:hush2@db/crm" }
      for (const sources of [["env:A"], []]) {
        const { message } = yield* Effect.flip(settings(sources, environment))
        expect(message).not.toContain("hush")
      }
      const { message } = yield* Effect.flip(
        settings([
          "app:hush1@db/crm",
          "x=Pwd=hush2;Server=h",
          "pwd=hush3;Host=h",
          "x=oracle://u:hu/sh4hush@h"
        ])
      )
      expect(message).not.toContain("hush")
    })
  )

  it.effect("wrong kinds everywhere", () =>
    Effect.gen(function* () {
      expect(
        yield* places({
          sources: {
            a: { engine: "sqlite" },
            b: { engine: "sqlite", file: 5 },
            c: { file: "c.db" },
            d: "d.db"
          },
          log: { level: 1, file: "" },
          structuredContent: 1,
          extra: true
        })
      ).toEqual(
        expect.arrayContaining([
          "sources.a.file",
          "sources.b.file",
          expect.stringMatching(/^sources\.c/),
          "sources.d",
          "log.level",
          "log.file",
          "structuredContent",
          "extra"
        ])
      )
    })
  )

  it.effect("a key that stands twice, beside every other problem", () =>
    Effect.gen(function* () {
      const path = join(home, "twice.json")
      const source = JSON.stringify(sqlite)
      writeFileSync(path, `{"sources":{"a":${source},"b":${source},"a":${source}},"extra":1}`)
      const { problems } = yield* Effect.flip(settings([], {}, path))
      expect(problems.map(({ where }) => where)).toEqual(["sources.a", "extra"])
    })
  )

  it.effect("the message names each place once", () =>
    Effect.map(Effect.flip(settings(["a=x.db", "a=y.db", "env:NOWHERE", "q.docx"])), ({ message }) => {
      expect(message.match(/^ {2}\S/gm)).toHaveLength(3)
      for (const text of ["SOURCE 2", "SOURCE 3", "SOURCE 4", "NOWHERE", "q.docx"])
        expect(message).toContain(text)
    })
  )
})

describe("names of the environment", () => {
  const replaced = (value: unknown, environment: Record<string, string>) => {
    const missing: Array<string> = []
    const result = substitute(value, environment, (path, name, isSet) => {
      if (!isSet) missing.push(`${path.join(".")}:${name}`)
    })
    return { result, missing }
  }
  // biome-ignore-start lint/suspicious/noTemplateCurlyInString: the config file's own syntax

  it("are replaced in every text, and nowhere else", () =>
    expect(replaced({ a: ["${X}${X}", 5, null, { b: "1${Y}2" }], "${X}": true }, { X: "x", Y: "" })).toEqual({
      result: { a: ["xx", 5, null, { b: "12" }], "${X}": true },
      missing: []
    }))

  it("are not looked for in what they were replaced by", () =>
    expect(replaced("${X}", { X: "${Y}", Y: "no" }).result).toBe("${Y}"))

  it("that are missing are told with their key path", () =>
    expect(replaced({ a: ["x", { b: "${NO}" }] }, {}).missing).toEqual(["a.1.b:NO"]))

  it("other dollars stay", () =>
    expect(replaced("$X ${} ${1a} $${X}", { X: "x" }).result).toBe("$X ${} ${1a} $x"))
  // biome-ignore-end lint/suspicious/noTemplateCurlyInString: as above
})

it("the config file's Schema has a description for every engine's source", () =>
  expect(ConfigFile.fields.sources.value).toBeDefined())
