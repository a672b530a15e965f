/** The built program as a bare process: its command line, its streams byte by byte, its end. */
import { type ChildProcess, spawn } from "node:child_process"
import { afterAll, expect } from "vitest"
import { type Answer, answerOf } from "./Answer.js"
import { mainFile } from "./Client.js"
import { type LogLine, lineReader } from "./Lines.js"
import { eventually } from "./Process.js"

export interface ProgramOptions {
  readonly env?: Record<string, string>
  readonly cwd?: string
  /** What stands before `node dist/main.js`. */
  readonly prefix?: ReadonlyArray<string>
  /** A program of a test, in place of `dist/main.js`. */
  readonly file?: string
}

/** A message of JSON-RPC, as it came. */
export type Message = {
  readonly jsonrpc: string
  readonly id?: string | number
  readonly result?: Record<string, unknown>
  readonly error?: { readonly code: number; readonly message: string }
}

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** Only what a process needs to run, so that no test depends on the machine's own variables. */
const environment = (env: Record<string, string> = {}) => ({ PATH: process.env["PATH"] ?? "", ...env })

const started: Array<ChildProcess> = []
afterAll(() => {
  for (const child of started) child.kill("SIGKILL")
})

export class Program {
  readonly process: ChildProcess
  readonly messages: Array<Message> = []
  readonly ended: Promise<Ended>
  stdout = ""
  stderr = ""
  #lastId = 0

  constructor(args: ReadonlyArray<string>, { cwd, env, file = mainFile, prefix = [] }: ProgramOptions = {}) {
    const [command = process.execPath, ...rest] = [...prefix, process.execPath, file, ...args]
    this.process = spawn(command, rest, {
      env: environment(env),
      ...(cwd === undefined ? {} : { cwd }),
      stdio: ["pipe", "pipe", "pipe"]
    })
    started.push(this.process)
    // Everything on stdout is a message, or the test fails here.
    const readLine = lineReader((line) => this.messages.push(JSON.parse(line)))
    this.process.stdout?.on("data", (chunk: Buffer) => {
      this.stdout += chunk.toString("utf8")
      if (!this.#plain) readLine(chunk)
    })
    this.process.stderr?.on("data", (chunk: Buffer) => {
      this.stderr += chunk.toString("utf8")
    })
    this.process.stdin?.on("error", () => {})
    this.ended = new Promise((resolve) =>
      this.process.on("close", (code, signal) => resolve({ code, signal }))
    )
    this.#plain = args.includes("--help") || args.includes("--version") || args.includes("-h")
  }

  #plain: boolean

  get pid(): number {
    return this.process.pid ?? 0
  }

  get log(): ReadonlyArray<LogLine> {
    return this.stderr
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line))
  }

  /** Writes a line; an object as JSON. */
  send(message: object | string): void {
    this.process.stdin?.write(`${typeof message === "string" ? message : JSON.stringify(message)}\n`)
  }

  notify(method: string, params?: object): void {
    this.send({ jsonrpc: "2.0", method, ...(params === undefined ? {} : { params }) })
  }

  /** Sends a request and gives its id at once. */
  begin(method: string, params?: object): number {
    const id = ++this.#lastId
    this.send({ jsonrpc: "2.0", id, method, ...(params === undefined ? {} : { params }) })
    return id
  }

  beginQuery(args: object): number {
    return this.begin("tools/call", { name: "query", arguments: args })
  }

  answer(id: string | number): Promise<Message> {
    return eventually(`an answer to ${id}`, () => this.messages.find((message) => message.id === id))
  }

  async request(method: string, params?: object): Promise<Message> {
    return this.answer(this.begin(method, params))
  }

  /** The answer of a call that was begun. */
  async answerTo(id: number): Promise<Answer> {
    const { error, result } = await this.answer(id)
    expect(error).toBeUndefined()
    return answerOf(result ?? {})
  }

  query(args: object): Promise<Answer> {
    return this.answerTo(this.beginQuery(args))
  }

  async initialize(): Promise<this> {
    const { result } = await this.request("initialize", {
      protocolVersion: "2025-06-18",
      capabilities: {},
      clientInfo: { name: "test", version: "0" }
    })
    expect(result).toMatchObject({ serverInfo: { name: "mcp-query" } })
    this.notify("notifications/initialized")
    return this
  }

  closeStdin(): void {
    this.process.stdin?.end()
  }
}

/** Runs the program with an empty stdin to its end. */
export const runProgram = async (args: ReadonlyArray<string>, options: ProgramOptions = {}) => {
  const program = new Program(args, options)
  program.closeStdin()
  const ended = await program.ended
  return { ...ended, stdout: program.stdout, stderr: program.stderr }
}
