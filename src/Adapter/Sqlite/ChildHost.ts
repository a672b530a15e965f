/**
 * What every child process of this project does beside its work: answer one request at a time, end with its parent,
 * and keep to itself. Statements block the process, so nothing here may depend on its event loop while one runs.
 */
import { Worker } from "node:worker_threads"
import { refusalOf } from "./Execute.js"
import type { Reply, StatementRequest } from "./Protocol.js"

/**
 * A busy process cannot see that its parent is gone, nor that it takes too much memory; a thread beside it can, and
 * ends both. (SQLite's own `hard_heap_limit` does nothing in a build without memory statistics, as the driver's is.)
 */
const watch = (maxResidentBytes: number) => {
  // The parent says who it is: it may be gone before this process could ask.
  const watchdog = new Worker(
    `const parent=${Number(process.argv[2] ?? process.ppid)},most=${maxResidentBytes};setInterval(()=>{` +
      `if(process.ppid!==parent)process.kill(process.pid,"SIGKILL");` +
      `if(process.memoryUsage.rss()>most)process.kill(process.pid,"SIGABRT")},250)`,
    { eval: true, resourceLimits: { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1, stackSizeMb: 1 } }
  )
  watchdog.unref()
}

type Answered = Reply & { ok: true }

/**
 * Serves requests, one at a time, until the parent goes away; `handler` receives the first message, which says what to
 * open. Past `maxResidentBytes` the process ends as one whose heap is exhausted does.
 */
export const serve = <Setup>(
  handler: (setup: Setup) => (request: StatementRequest) => Answered | Promise<Answered>,
  { maxResidentBytes = Number.MAX_SAFE_INTEGER }: { readonly maxResidentBytes?: number } = {}
) => {
  let handle: ((request: StatementRequest) => Answered | Promise<Answered>) | undefined
  const answer = async (request: StatementRequest): Promise<Reply> => {
    try {
      if (handle === undefined) throw new Error("A request came before the set-up.")
      return await handle(request)
    } catch (error) {
      return { id: request.id, ok: false, refusal: refusalOf(error) }
    }
  }
  process.on("message", (message: { setup: Setup } | { request: StatementRequest }) => {
    if ("setup" in message) handle = handler(message.setup)
    else void answer(message.request).then((reply) => process.send?.(reply))
  })
  process.on("disconnect", () => process.exit(0))
  // A terminal sends these to the whole group; the parent decides when this process ends.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {})
  watch(maxResidentBytes)
}
