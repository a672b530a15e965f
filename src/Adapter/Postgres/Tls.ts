/** What each `sslmode` means for a connection: in which order TLS and plain text are tried, and what is verified. */
import { readFileSync } from "node:fs"
import type { ConnectionOptions } from "node:tls"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { ConnectionFailed } from "../../QueryError.js"
import type { Config } from "./Config.js"

/** Null: plain text. */
export type Attempt = ConnectionOptions | null

const pem = (fileOrText: string): string =>
  fileOrText.includes("-----BEGIN") ? fileOrText : readFileSync(fileOrText, "utf8")

const options = (config: Config): ConnectionOptions => {
  const { sslmode, ca, cert, key, keyPassword } = config
  const anchors = ca === undefined || ca === "system" ? undefined : pem(ca)
  return {
    minVersion: "TLSv1.2",
    // As in libpq, certificates that are given are verified against, whatever the mode.
    rejectUnauthorized: anchors !== undefined || sslmode === "verify-ca" || sslmode === "verify-full",
    ...(anchors === undefined ? {} : { ca: anchors }),
    ...(cert === undefined ? {} : { cert: pem(cert) }),
    ...(key === undefined ? {} : { key: pem(Redacted.value(key)) }),
    ...(keyPassword === undefined ? {} : { passphrase: Redacted.value(keyPassword) }),
    ...(sslmode === "verify-full" ? {} : { checkServerIdentity: () => undefined })
  }
}

/** The attempts on one host, in order. Files are read at each connection, so that renewed certificates are used. */
export const attempts = (
  config: Config,
  host: string
): Effect.Effect<ReadonlyArray<Attempt>, ConnectionFailed> => {
  // A socket file is on this machine: libpq uses no TLS on it, whatever the mode.
  if (host.startsWith("/") || config.sslmode === "disable") return Effect.succeed([null])
  return Effect.try({
    try: (): ReadonlyArray<Attempt> => {
      const tls = options(config)
      switch (config.sslmode) {
        case "allow":
          return [null, tls]
        case "prefer":
          return [tls, null]
        default:
          return [tls]
      }
    },
    catch: (cause) =>
      new ConnectionFailed({
        reason: "tls",
        message: "A certificate or key file of this source cannot be read.",
        cause
      })
  })
}
