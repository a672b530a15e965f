/** `[id=]LOCATION` → which engine, where. */
import { existsSync } from "node:fs"
import * as Either from "effect/Either"

/** Where a source is, before its engine's own schema has seen it. */
export type Location =
  | { readonly kind: "file"; readonly engine: "sqlite" | "excel" | "csv"; readonly file: string }
  | { readonly kind: "url"; readonly engine: "postgres" | "mssql"; readonly url: string }

export interface LocationFault {
  readonly expected: string
  readonly found: string
}

const fault = (expected: string, found: string): Either.Either<never, LocationFault> =>
  Either.left({ expected, found })

const fileEngines: ReadonlyMap<string, "sqlite" | "excel" | "csv"> = new Map([
  ["db", "sqlite"],
  ["sqlite", "sqlite"],
  ["sqlite3", "sqlite"],
  ["xlsx", "excel"],
  ["xlsm", "excel"],
  ["xltx", "excel"],
  // Refused by the reader, with advice on how to convert them.
  ["xls", "excel"],
  ["xlsb", "excel"],
  ["ods", "excel"],
  ["csv", "csv"],
  ["tsv", "csv"]
])

const forms =
  "a URL (postgres://, sqlserver://, sqlite:, excel:, csv:), a file (.db .sqlite .sqlite3 .xlsx .xlsm .xltx .csv .tsv) or env:NAME"

/** The path of a file URL: `sqlite:./a.db`, `sqlite://a.db` and `sqlite:///var/a.db`. */
const pathOf = (rest: string): string => {
  if (!rest.startsWith("//")) return rest
  try {
    return decodeURIComponent(rest.slice(2))
  } catch {
    return rest.slice(2)
  }
}

/**
 * What may be said of a location: nothing behind a ?, nothing of `key=value;…`, and of one with an @ only its scheme,
 * since a password may hold any character.
 */
export const redactLocation = (location: string): string => {
  if (/^[^/@?]*[=;].*[=;]/s.test(location)) return "…"
  if (location.includes("@")) return `${/^[a-z][a-z0-9+.-]*:\/\//i.exec(location)?.[0] ?? ""}…`
  return location.replace(/[?#;].*$/s, "…").slice(0, 120)
}

const quoted = (location: string) => JSON.stringify(redactLocation(location))

/** `show` says what a location is that is none. */
export const parseLocation = (
  location: string,
  show: (location: string) => string = quoted
): Either.Either<Location, LocationFault> => {
  const [, scheme, rest] = /^([a-z][a-z0-9+.-]*):(.*)$/is.exec(location) ?? []
  switch (scheme?.toLowerCase()) {
    case "postgres":
    case "postgresql":
      return Either.right({ kind: "url", engine: "postgres", url: location })
    case "sqlserver":
    case "mssql":
      return Either.right({ kind: "url", engine: "mssql", url: location })
    case "mysql":
    case "mariadb":
      return fault(forms, `a ${scheme} URL; MySQL and MariaDB are not served`)
    case "sqlite":
    case "excel":
    case "csv": {
      const file = pathOf(rest ?? "")
      return file === ""
        ? fault(`a path after ${scheme}:`, "nothing")
        : Either.right({ kind: "file", engine: scheme?.toLowerCase() as "sqlite" | "excel" | "csv", file })
    }
  }
  // ADO-style connection strings name a server and no scheme.
  if (/^\s*(server|data source)\s*=/i.test(location))
    return Either.right({ kind: "url", engine: "mssql", url: location })
  const extension = /\.([a-z0-9]+)$/i.exec(location)?.[1]?.toLowerCase()
  // SQLite has no ending of its own: whatever else is there is taken for a database, and its first call tells.
  const engine = fileEngines.get(extension ?? "") ?? (existsSync(location) ? "sqlite" : undefined)
  return engine === undefined
    ? fault(forms, location === "" ? "nothing" : show(location))
    : Either.right({ kind: "file", engine, file: location })
}

/** The id of a source that was given none: its file's or database's name. */
export const defaultId = (location: Location): string => {
  const name =
    location.kind === "file"
      ? (location.file.split(/[\\/]/).at(-1) ?? "").replace(/\.[^.]*$/, "")
      : databaseName(location.url)
  return toId(name) || location.engine
}

const databaseName = (url: string): string => {
  const ado = /(?:^|;)\s*(?:database|initial catalog)\s*=\s*([^;]*)/i.exec(url)?.[1]
  if (ado !== undefined) return ado
  const path = /^[a-z]+:\/\/[^/]*\/([^?#;]*)/i.exec(url)?.[1] ?? ""
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

const toId = (name: string) =>
  name
    .toLowerCase()
    .replace(/[^a-z0-9_]+/g, "_")
    .replace(/^_+|_+$/g, "")
