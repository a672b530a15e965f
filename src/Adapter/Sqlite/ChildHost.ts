/**
 * What every child process of this project does beside its work: answer one request at a time, end with its parent,
 * and keep to itself. Statements block the process, so nothing here may depend on its event loop while one runs.
 */
import { Worker } from "node:worker_threads"
import { refusalOf } from "./Execute.js"
import type { Reply, StatementRequest } from "./Protocol.js"

/** A busy process cannot see that its parent is gone; a thread beside it can, and ends both. */
const watchParent = () => {
  const watchdog = new Worker(
    `const parent=${process.ppid};setInterval(()=>{if(process.ppid!==parent)process.kill(process.pid,"SIGKILL")},500)`,
    { eval: true, resourceLimits: { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1, stackSizeMb: 1 } }
  )
  watchdog.unref()
}

/** Serves requests until the parent goes away; `configure` receives the first message, which says what to open. */
export const serve = <Setup>(
  handler: (setup: Setup) => (request: StatementRequest) => Reply & { ok: true }
) => {
  let handle: ((request: StatementRequest) => Reply) | undefined
  const answer = (request: StatementRequest): Reply => {
    try {
      if (handle === undefined) throw new Error("A request came before the set-up.")
      return handle(request)
    } catch (error) {
      return { id: request.id, ok: false, refusal: refusalOf(error) }
    }
  }
  process.on("message", (message: { setup: Setup } | { request: StatementRequest }) => {
    if ("setup" in message) handle = handler(message.setup)
    else process.send?.(answer(message.request))
  })
  process.on("disconnect", () => process.exit(0))
  // A terminal sends these to the whole group; the parent decides when this process ends.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {})
  watchParent()
}
