/** The built server under the SDK's own client. */
import { fileURLToPath } from "node:url"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { afterAll } from "vitest"
import { type Answer, answerOf } from "./Answer.js"
import { type LogLine, lineReader } from "./Lines.js"

export const mainFile = fileURLToPath(new URL("../../dist/main.js", import.meta.url))

export interface ClientOptions {
  readonly env?: Record<string, string>
  readonly cwd?: string
  /** What stands before `node dist/main.js`, say a command that takes privileges away. */
  readonly prefix?: ReadonlyArray<string>
  /** False where the config turns structured content off. */
  readonly structured?: boolean
}

export interface TestClient {
  readonly client: Client
  readonly pid: number
  /** The log so far. */
  readonly log: ReadonlyArray<LogLine>
  readonly call: (tool: string, args: object, options?: { readonly signal?: AbortSignal }) => Promise<Answer>
  readonly query: (args: object | string, options?: { readonly signal?: AbortSignal }) => Promise<Answer>
  readonly close: () => Promise<void>
}

const open: Array<TestClient> = []
afterAll(async () => {
  await Promise.all(open.map(({ close }) => close()))
})

/** Starts `node dist/main.js ARGS` and opens a session with it. */
export const connect = async (
  args: ReadonlyArray<string>,
  { cwd, env = {}, prefix = [], structured = true }: ClientOptions = {}
): Promise<TestClient> => {
  const [command = process.execPath, ...rest] = [...prefix, process.execPath, mainFile, ...args]
  const transport = new StdioClientTransport({
    command,
    args: rest,
    env,
    stderr: "pipe",
    ...(cwd === undefined ? {} : { cwd })
  })
  const log: Array<LogLine> = []
  transport.stderr?.on(
    "data",
    lineReader((line) => log.push(JSON.parse(line)))
  )
  const client = new Client({ name: "test", version: "0" })
  await client.connect(transport)
  // From now on the client holds each answer against the tool's output schema.
  await client.listTools()
  const call: TestClient["call"] = async (name, args, options) =>
    answerOf(
      await client.callTool({ name, arguments: args as Record<string, unknown> }, undefined, {
        timeout: 60_000,
        ...options
      }),
      structured
    )
  const result: TestClient = {
    client,
    pid: transport.pid ?? 0,
    log,
    call,
    query: (args, options) => call("query", typeof args === "string" ? { sql: args } : args, options),
    close: () => client.close()
  }
  open.push(result)
  return result
}
