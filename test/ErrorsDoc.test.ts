import { readFileSync } from "node:fs"
import { relative, resolve } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import ts from "typescript"
import { errorsDoc } from "../scripts/ErrorsDoc.js"

describe("ERRORS.md", () => {
  it("is what the code says (npm run docs:errors writes it)", () => {
    expect(readFileSync("ERRORS.md", "utf8")).toBe(errorsDoc())
  })
})

/** The files that do not compile when `path` reads as `text`. */
const filesWithErrors = (path: string, text: string): ReadonlyArray<string> => {
  const config = ts.getParsedCommandLineOfConfigFile(
    "tsconfig.json",
    { noEmit: true, declaration: false },
    {
      ...ts.sys,
      onUnRecoverableConfigFileDiagnostic: (diagnostic) => {
        throw new Error(ts.flattenDiagnosticMessageText(diagnostic.messageText, "\n"))
      }
    }
  )
  if (config === undefined) throw new Error("There is no tsconfig.json.")
  const host = ts.createCompilerHost(config.options)
  const changed = resolve(path)
  const read = host.readFile
  host.readFile = (file) => (resolve(file) === changed ? text : read(file))
  const roots = config.fileNames.filter((file) => !relative(".", file).startsWith("test"))
  const program = ts.createProgram({ rootNames: roots, options: config.options, host })
  const files = ts
    .getPreEmitDiagnostics(program)
    .map(({ file }) => (file === undefined ? "" : relative(".", file.fileName)))
  return [...new Set(files)].sort()
}

describe("the union of failures", () => {
  it("a new tag breaks the build in the handler and in the document, and nowhere else", () => {
    const path = "src/QueryError.ts"
    const text = readFileSync(path, "utf8")
    const union = "Schema.Union(ConnectionFailed, QueryFailed, QueryRejected)"
    expect(text).toContain(union)
    const withTag = text
      .replace(union, "Schema.Union(ConnectionFailed, QueryFailed, QueryRejected, QuotaExceeded)")
      .replace(
        "/** The whole failure channel of an adapter. */",
        `export class QuotaExceeded extends Schema.TaggedError<QuotaExceeded>()("QuotaExceeded", {
  reason: Schema.Literal("quota"),
  ...details
}) {}
`
      )
    expect(filesWithErrors(path, withTag)).toEqual(["scripts/ErrorsDoc.ts", "src/McpServer/Response.ts"])
  }, 180_000)
})
