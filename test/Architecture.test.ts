/** The rules of ARCHITECTURE.md that can be read off the sources: who imports whom, and who may do what. */
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, relative, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "@effect/vitest"
import ts from "typescript"
import packageJson from "../package.json" with { type: "json" }
import { version } from "../src/Version.js"

const root = fileURLToPath(new URL("../src", import.meta.url))

const sources = readdirSync(root, { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts"))
  .map((file) => ({ file: file.replaceAll("\\", "/"), text: readFileSync(join(root, file), "utf8") }))

interface Import {
  readonly from: string
  /** A file under src without its ending, or a package's specifier. */
  readonly to: string
  readonly local: boolean
}

/** Imports, re-exports, `import()` and `import("…").Type`, as TypeScript reads them. */
const imports: ReadonlyArray<Import> = sources.flatMap(({ file, text }) =>
  ts.preProcessFile(text, true, true).importedFiles.map(({ fileName }) => {
    const local = fileName.startsWith(".")
    const target = relative(root, resolve(root, dirname(file), fileName)).replaceAll("\\", "/")
    return { from: file, to: local ? target.replace(/\.js$/, ".ts") : fileName, local }
  })
)

const packageImports = imports.filter(({ local }) => !local)

/** The files that import a package of these. */
const importersOf = (...packages: ReadonlyArray<string>) => [
  ...new Set(
    packageImports
      .filter(({ to }) => packages.some((name) => to === name || to.startsWith(`${name}/`)))
      .map(({ from }) => from)
  )
]

const outside = (files: ReadonlyArray<string>, allowed: RegExp) => files.filter((file) => !allowed.test(file))

const filesWith = (pattern: RegExp) =>
  sources.filter(({ text }) => pattern.test(text)).map(({ file }) => file)

describe("imports go down only", () => {
  /** From the highest room to the lowest; a file belongs to the first that fits. */
  const rooms: ReadonlyArray<readonly [string, RegExp]> = [
    ["program", /^(main|index|adapters|server)\.ts$/],
    ["Cli", /^(Cli|Demo|Audit)\//],
    ["McpServer", /^McpServer(\.ts|\/)/],
    ["Tool", /^Tools?(\.ts|\/)/],
    ["middle", /^(Policy|Engines|Sources|Catalog|CallLog|Settings|Hint)(\.ts|\/)/],
    ["engine", /^Adapter\/(?!Owner|ReadClient|ClientLimits)/],
    ["port", /^Adapter(\.ts|\/(Owner|ReadClient|ClientLimits)\.ts)$/],
    ["ground", /^[A-Z][A-Za-z]*\.ts$/]
  ]
  const heightOf = (file: string) => rooms.findIndex(([, pattern]) => pattern.test(file))

  it("every file belongs to a room", () =>
    expect(sources.map(({ file }) => file).filter((file) => heightOf(file) < 0)).toEqual([]))

  it("every import leads to a file", () => {
    const known = new Set(sources.map(({ file }) => file))
    expect(imports.filter(({ local, to }) => local && !to.endsWith(".json") && !known.has(to))).toEqual([])
  })

  it("no file imports from a room above its own", () => {
    const upwards = imports.filter(({ from, local, to }) => local && heightOf(to) < heightOf(from))
    expect(upwards.map(({ from, to }) => `${from} → ${to}`)).toEqual([])
  })

  it("an engine does not know another, but workbooks run as SQLite does", () => {
    const engineOf = (file: string) => /^Adapter\/([A-Z][A-Za-z]+)/.exec(file)?.[1]
    const engines = ["Sqlite", "Postgres", "SqlServer", "Excel"]
    const across = imports
      .filter(({ local }) => local)
      .map(({ from, to }) => [engineOf(from), engineOf(to)] as const)
      .filter(([from, to]) => engines.includes(from ?? "") && engines.includes(to ?? "") && from !== to)
    expect(across.filter(([from, to]) => !(from === "Excel" && to === "Sqlite"))).toEqual([])
  })

  it("the rows, the errors and the answer know nothing of the project", () => {
    for (const file of ["Rows.ts", "QueryError.ts", "QueryResult.ts"])
      expect(imports.filter(({ from, local, to }) => from === file && local && to !== "Rows.ts")).toEqual([])
    expect(imports.filter(({ from }) => from === "Rows.ts")).toEqual([])
  })
})

describe("packages", () => {
  it.each<readonly [string, ReadonlyArray<string>, RegExp]>([
    ["PostgreSQL's driver", ["pg", "pg-protocol", "pg-types"], /^Adapter\/Postgres/],
    ["SQL Server's driver", ["tedious"], /^Adapter\/SqlServer/],
    ["SQLite's driver", ["better-sqlite3", "better-sqlite3-13"], /^Adapter\/(Sqlite|Excel)/],
    ["the zip reader", ["yauzl"], /^Adapter\/Excel/],
    ["the reader of delimited text", ["csv-parse"], /^Adapter\/Excel/],
    ["PostgreSQL's grammar", ["libpg-query"], /^Policy\/PostgresGrammar\.ts$/],
    ["the protocol's SDK", ["@modelcontextprotocol/sdk"], /^(McpServer(\.ts|\/)|Cli\/)/],
    ["the writer of workbooks (the build)", ["exceljs"], /^$/]
  ])("%s is imported by its owner only", (_, packages, owner) =>
    expect(outside(importersOf(...packages), owner)).toEqual([])
  )

  it("the server serves without the SDK's client, and the client is the demo's", () =>
    expect(outside(importersOf("@modelcontextprotocol/sdk/client"), /^Cli\/Demo\.ts$/)).toEqual([]))

  it("Effect is imported by its modules, never as a whole", () =>
    expect(
      packageImports.filter(({ to }) =>
        [
          "effect",
          "@effect/platform",
          "@effect/platform-node",
          "@effect/sql",
          "@effect/experimental"
        ].includes(to)
      )
    ).toEqual([]))

  /** What a module brings in when it is run: files under src and packages, without mere types. */
  const reachedFrom = (...files: ReadonlyArray<string>): ReadonlySet<string> => {
    const reached = new Set<string>()
    const visit = (file: string) => {
      if (reached.has(file)) return
      reached.add(file)
      for (const { text } of sources.filter((source) => source.file === file)) {
        // Types leave no trace in the built program.
        const values = text.replace(/^(import|export) type [^=]*?from "[^"]*"$/gm, "")
        for (const { fileName } of ts.preProcessFile(values, true, true).importedFiles) {
          if (fileName.startsWith("."))
            visit(relative(root, resolve(root, dirname(file), fileName)).replace(/\.js$/, ".ts"))
          else if (!fileName.startsWith("node:"))
            reached.add(/^(@[^/]+\/)?[^/]+/.exec(fileName)?.[0] ?? fileName)
        }
      }
    }
    files.forEach(visit)
    return reached
  }
  const packagesOf = (reached: ReadonlySet<string>) => [...reached].filter((name) => !name.endsWith(".ts"))

  it("child processes keep Effect out", () => {
    for (const child of ["Adapter/Sqlite/Child.ts", "Adapter/Excel/Child.ts"]) {
      const packages = packagesOf(reachedFrom(child))
      expect(packages).toContain("better-sqlite3")
      expect(packages.filter((name) => /^(@effect\/|effect$)/.test(name))).toEqual([])
    }
  })

  const declared = Object.keys({
    ...packageJson.dependencies,
    ...packageJson.optionalDependencies,
    ...packageJson.peerDependencies
  })

  it("what the library imports is a dependency of the package", () => {
    const packages = packagesOf(reachedFrom("index.ts", "adapters.ts", "server.ts"))
    expect(packages).toContain("effect")
    expect(packages.filter((name) => !declared.includes(name))).toEqual([])
  })

  it("what the command imports is one, or is built into it", () => {
    const known = [...declared, ...Object.keys(packageJson.devDependencies)]
    expect(packagesOf(reachedFrom("main.ts")).filter((name) => !known.includes(name))).toEqual([])
  })
})

describe("rights", () => {
  it("only Policy mints an admitted query", () => {
    expect(filesWith(/Brand\.(nominal|refined)\s*<\s*AdmittedQuery/)).toEqual(["Policy.ts"])
    expect(filesWith(/as\s+(unknown\s+as\s+)?AdmittedQuery\b/)).toEqual([])
  })

  // A child process is told its parent's id as its one argument.
  it("only Settings reads the environment and the command line", () => {
    expect(
      outside(
        filesWith(/process\.(env|argv)\b/),
        /^(Adapter\/Sqlite\/ChildHost\.ts|main\.ts|Settings(\.ts|\/)|Cli\/)/
      )
    ).toEqual([])
  })

  it("standard output belongs to the transport and the commands", () => {
    expect(outside(filesWith(/\bconsole\./), /^Cli\//)).toEqual([])
    expect(outside(filesWith(/process\.(stdout|stderr)\b/), /^(Cli\/|server\.ts$)/)).toEqual([])
    expect(outside(filesWith(/\bwriteSync\(/), /^(main|OutputStream|CallLog)\.ts$|^Cli\//)).toEqual([])
  })

  it("only the commands end the process, and a child its own", () => {
    expect(outside(filesWith(/process\.exit\(/), /^(main\.ts|Cli\/|Adapter\/(Sqlite|Excel)\/Child)/)).toEqual(
      []
    )
  })

  it("no cast hides a type, and no expected failure dies", () => {
    expect(filesWith(/\bas any\b|: any\s*[;,)>\]=]|<any>|@ts-(ignore|expect-error|nocheck)/)).toEqual([])
    // Nobody could answer for the demo's own sample data.
    expect(outside(filesWith(/Effect\.orDie\b|catchAllCause/), /^(Cli\/Demo\.ts$|Demo\/)/)).toEqual([])
  })

  it("nothing is left to be done later", () => expect(filesWith(/\b(TODO|FIXME|XXX)\b/)).toEqual([]))
})

it("the version is the package's", () => expect(version).toBe(packageJson.version))
