/** What the log hears of a source's connections: that it was reached, lost, reached again, and what its login may do. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { Scope } from "effect/Scope"
import type { AdapterService } from "../Adapter.js"
import type { CallLogService } from "../CallLog.js"
import type { Dialect } from "../Dialect.js"
import type { AdapterFailure, ConnectionFailed } from "../QueryError.js"

export interface ConnectionEvents {
  /** Watches the outcome of one use of `adapter`. */
  readonly watch: <A>(
    adapter: AdapterService,
    use: Effect.Effect<A, AdapterFailure>
  ) => Effect.Effect<A, AdapterFailure>
}

/** How many milliseconds a source may take to tell about itself, once it is connected. */
export const reportTimeoutMs = 15_000

export const make = (
  source: string,
  { hasLogins = false, name: engine }: Dialect,
  log: CallLogService,
  scope: Scope
): ConnectionEvents => {
  const base = { source, engine }
  let state: "unknown" | "connected" | "lost" = "unknown"

  const announce = (adapter: AdapterService) =>
    Effect.gen(function* () {
      const report = yield* Effect.either(Effect.timeoutOption(adapter.report, reportTimeoutMs))
      const told = Either.isRight(report) && report.right._tag === "Some" ? report.right.value : undefined
      if (told === undefined) return yield* log.event("info", "source_connected", base)
      const { excessPrivileges, login, tls, version } = told
      const level = excessPrivileges.length > 0 ? "warn" : "info"
      yield* log.event(level, "source_connected", { ...base, version, tls, login, excessPrivileges })
    })

  const connected = (adapter: AdapterService) =>
    Effect.suspend(() => {
      const before = state
      state = "connected"
      if (before === "connected") return Effect.void
      if (before === "lost") return log.event("info", "source_recovered", base)
      // The report asks the source again; no call waits for it.
      return hasLogins
        ? Effect.asVoid(Effect.forkIn(Effect.interruptible(announce(adapter)), scope))
        : log.event("info", "source_connected", base)
    })

  const lost = ({ cause, reason }: ConnectionFailed) =>
    Effect.suspend(() => {
      if (state === "lost") return Effect.void
      state = "lost"
      return log.event("warn", "source_lost", { ...base, reason, cause })
    })

  return {
    watch: (adapter, use) =>
      use.pipe(
        Effect.tap(() => connected(adapter)),
        Effect.tapError((failure) =>
          failure._tag === "ConnectionFailed" ? lost(failure) : connected(adapter)
        )
      )
  }
}
