/**
 * What every child process of this project does beside its work: answer one request at a time, end with its parent,
 * and keep to itself. Statements block the process, so nothing here may depend on its event loop while one runs.
 */
import { Worker } from "node:worker_threads"
import { refusalOf } from "./Execute.js"
import type { Reply, StatementRequest } from "./Protocol.js"

/** Bound of what SQLite sorts and keeps in temporary files, which no limit of its own counts. */
const maxTemporaryBytes = 2 * 2 ** 30

/**
 * A busy process cannot see that its parent is gone, nor that it takes too much memory or disk; a thread beside it can,
 * and ends both. (SQLite's own `hard_heap_limit` does nothing in a build without memory statistics, as the driver's is.)
 * Temporary files have no name any more while they are open, so that Linux alone tells of them.
 */
const watch = (maxResidentBytes: number) => {
  // The parent says who it is: it may be gone before this process could ask.
  const watchdog = new Worker(
    `const{readdirSync,statSync}=require("node:fs"),open="/proc/self/fd/",` +
      `parent=${Number(process.argv[2] ?? process.ppid)},most=${maxResidentBytes};` +
      `const size=fd=>{try{const s=statSync(open+fd);return s.isFile()&&s.nlink===0?s.size:0}catch{return 0}};` +
      `const temporary=()=>{try{return readdirSync(open).reduce((sum,fd)=>sum+size(fd),0)}catch{return 0}};` +
      `setInterval(()=>{if(process.ppid!==parent)process.kill(process.pid,"SIGKILL");` +
      `if(process.memoryUsage.rss()>most||temporary()>${maxTemporaryBytes})process.kill(process.pid,"SIGABRT")},250)`,
    { eval: true, resourceLimits: { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1, stackSizeMb: 1 } }
  )
  watchdog.unref()
}

type Answered = Reply & { ok: true }

/**
 * Serves requests, one at a time, until the parent goes away; `handler` receives the first message, which says what to
 * open. Past `maxResidentBytes`, or with too much in temporary files, the process ends as one whose heap is exhausted does.
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
