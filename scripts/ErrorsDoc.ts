/**
 * ERRORS.md: every way in which a call can fail, from the code itself. Reasons, retryability and the engines' codes are
 * read from the tables that the adapters use; only what a reason means to a reader is written here, and a reason or a
 * tag without it does not compile.
 */
import * as Excel from "../src/Adapter/Excel/Failure.js"
import * as Postgres from "../src/Adapter/Postgres/Failure.js"
import * as Sqlite from "../src/Adapter/Sqlite/Failure.js"
import * as SqlServer from "../src/Adapter/SqlServer/Failure.js"
import { categoryOf } from "../src/McpServer/Response.js"
import type { Category } from "../src/PublicError.js"
import {
  ConnectionFailed,
  ConnectionReason,
  InputReason,
  InvalidInput,
  isRetryable,
  type QueryError,
  QueryFailed,
  QueryReason,
  QueryRejected,
  RejectedReason
} from "../src/QueryError.js"

interface Told {
  readonly means: string
  readonly action: string
}

type ReasonOf<Tag extends QueryError["_tag"]> = Extract<QueryError, { readonly _tag: Tag }>["reason"]

interface Section<Tag extends QueryError["_tag"]> {
  readonly means: string
  readonly reasons: ReadonlyArray<ReasonOf<Tag>>
  readonly told: Readonly<Record<ReasonOf<Tag>, Told>>
  readonly example: (reason: ReasonOf<Tag>) => Extract<QueryError, { readonly _tag: Tag }>
}

const message = ""

const sections: { readonly [Tag in QueryError["_tag"]]: Section<Tag> } = {
  InvalidInput: {
    means:
      "The arguments do not fit the tool's schema; the engine was not touched. `issues` lists every fault with its path, what was expected and what came.",
    reasons: InputReason.literals,
    told: {
      missing_argument: { means: "A required argument is not there.", action: "Add it." },
      unknown_argument: {
        means: "The tool has no argument of that name.",
        action: "Use the name that `issues` suggests, or leave it out."
      },
      wrong_type: {
        means: "An argument is of another type than the schema says.",
        action: "Send the type that `issues` expects."
      },
      out_of_range: {
        means: "A value is too long, too large or too small.",
        action: "Stay within the bounds that `issues` names; they may be the source's own."
      },
      unknown_source: {
        means: "There is no source of that id.",
        action: "Use one of the ids that `issues` lists."
      }
    },
    example: (reason) =>
      new InvalidInput({ reason, message, issues: [{ path: "", reason, expected: "", received: "" }] })
  },
  ConnectionFailed: {
    means:
      "The adapter cannot reach the data source. The message never holds the driver's text; the log does.",
    reasons: ConnectionReason.literals,
    told: {
      refused: {
        means: "Nothing accepts connections there, or the server turns them away for now.",
        action: "Start the engine, or check host, port and firewall; then call again."
      },
      timeout: {
        means: "No answer came within `connectTimeoutMs`.",
        action: "Check the network; call again."
      },
      dns: { means: "The host's name cannot be resolved.", action: "Check the host in the configuration." },
      authentication: {
        means: "The engine does not accept the login, or does not let it use the database.",
        action: "Correct user, password or the login's rights."
      },
      tls: {
        means: "No secure connection could be agreed on.",
        action: "Name the certificate authority, or change the encryption settings of the source."
      },
      database_not_found: {
        means: "The engine has no database of that name.",
        action: "Correct the database's name."
      },
      file_not_found: { means: "The file does not exist.", action: "Correct the path in the configuration." },
      file_unreadable: {
        means: "The file is there and cannot be read: no right, damaged, encrypted, or of another format.",
        action: "Do what the message and hint say; see also the table of files below."
      },
      too_many_connections: {
        means: "The engine has no free connection.",
        action: "Call again later; lower `maxConcurrent`, or raise the engine's limit."
      },
      closed: {
        means:
          "The connection was lost. A read that had brought no row yet has already been tried again once on a fresh connection.",
        action: "Call again: the connection is replaced by the next call."
      }
    },
    example: (reason) => new ConnectionFailed({ reason, message })
  },
  QueryRejected: {
    means: "The operation breaks a rule of this server, or the engine itself refused to write.",
    reasons: RejectedReason.literals,
    told: {
      read_only: {
        means: "The statement would write, or lock what others write.",
        action: "Send a statement that only reads. No source can be written to."
      },
      multiple_statements: {
        means: "The text holds more than one statement.",
        action: "Send each statement in a call of its own."
      },
      statement_type: {
        means: "Statements of this kind are not run here.",
        action: "Send a SELECT, VALUES or WITH statement."
      },
      function_denied: {
        means: "The statement calls a function that acts outside of reading data.",
        action: "Write the statement without it."
      },
      unverifiable: {
        means: "The server cannot make sure that the statement only reads.",
        action: "Write it in plainer SQL."
      },
      overloaded: {
        means: "Too many calls are waiting for this source; the engine was not touched.",
        action: "Wait for answers, then call again."
      }
    },
    example: (reason) => new QueryRejected({ reason, message })
  },
  QueryFailed: {
    means:
      "The engine refused a valid request. The message is the engine's own sentence; `engine.code` is its code, `position` counts characters from 1 in the SQL.",
    reasons: QueryReason.literals,
    told: {
      syntax: { means: "The SQL cannot be parsed.", action: "Correct it at the position given." },
      unknown_table: {
        means: "There is no such table, view, sheet or schema.",
        action: "Call `schema` to see what there is."
      },
      unknown_column: {
        means: "There is no such column.",
        action: "Call `schema` with the table's name to see its columns."
      },
      unknown_function: {
        means: "There is no such function with these arguments.",
        action: "Use a function of the engine's dialect; cast arguments if need be."
      },
      ambiguous_name: {
        means: "A name could mean several things.",
        action: "Write the table's name or alias in front of it."
      },
      permission_denied: {
        means: "The login lacks a right.",
        action: "Read other objects, or let the login be granted the right."
      },
      type_mismatch: {
        means: "A value or operation does not fit a type.",
        action: "Cast, or correct the literal."
      },
      division_by_zero: { means: "A division by zero.", action: "Guard it, say with `nullif(x, 0)`." },
      out_of_range: {
        means: "A value is outside what its type can hold.",
        action: "Cast to a wider type, or limit the input."
      },
      constraint: { means: "A constraint was violated.", action: "Look for a function that tries to write." },
      parameters: {
        means: "`params` do not fit the placeholders of the statement.",
        action: "Give one value for each placeholder, by position."
      },
      timeout: {
        means: "The statement was stopped after `timeoutMs`.",
        action: "Make it do less, or raise `timeoutMs` up to the source's limit."
      },
      lock_timeout: {
        means: "Another session holds a lock, or this one was the victim of a deadlock.",
        action: "Call again."
      },
      resource_limit: {
        means: "The statement needs more memory, space or nesting than it may have.",
        action: "Ask for less at once."
      },
      engine_error: {
        means: "Any other refusal of the engine.",
        action: "Read the message; `engine.code` leads to the engine's manual."
      }
    },
    example: (reason) => new QueryFailed({ reason, message })
  }
}

/** What no tag stands for: a defect. */
const internal = {
  category: "internal_error" satisfies Category,
  reason: "unexpected",
  means:
    "An unforeseen fault crossed the boundary. The message is generic; the log has the stack under the correlation id.",
  told: {
    means: "A fault of this program or of a driver.",
    action: "Look up the correlation id in the log and report what stands there."
  }
} as const

// ---------------------------------------------------------------------------------------------------------------------
// Codes

const engines = ["PostgreSQL", "SQL Server", "SQLite and workbooks"] as const
type EngineName = (typeof engines)[number]

/** `category/reason` → engine → codes. */
type Codes = Map<string, Map<EngineName, Array<string>>>

const keyOf = (error: QueryError) => `${categoryOf(error)}/${error.reason}`

const sqliteCodes = [
  "ERROR",
  "INTERNAL",
  "PERM",
  "ABORT",
  "BUSY",
  "LOCKED",
  "NOMEM",
  "READONLY",
  "INTERRUPT",
  "IOERR",
  "CORRUPT",
  "NOTFOUND",
  "FULL",
  "CANTOPEN",
  "PROTOCOL",
  "SCHEMA",
  "TOOBIG",
  "CONSTRAINT",
  "MISMATCH",
  "MISUSE",
  "NOLFS",
  "AUTH",
  "RANGE",
  "NOTADB"
].map((name) => `SQLITE_${name}`)

/** Codes of the file system. */
const fileCodes = ["ENOENT", "ENOTDIR", "EISDIR", "EACCES", "EPERM"]

const statementText = {
  said: "",
  prefix: 0,
  timedOut: true,
  confidential: { password: undefined, names: [] }
}

const postgresError = (code: string) => Object.assign(new Error(message), { severity: "ERROR", code })

/** A class of two characters stands for its codes. */
const stateName = (state: string) => (state.length === 2 ? `class ${state}` : state)

const collect = (): Codes => {
  const codes: Codes = new Map()
  const add = (key: string, engine: EngineName, code: string) => {
    const byEngine = codes.get(key) ?? new Map<EngineName, Array<string>>()
    codes.set(key, byEngine)
    const known = byEngine.get(engine) ?? []
    byEngine.set(engine, known)
    if (!known.includes(code)) known.push(code)
  }
  const failure = (error: QueryError, engine: EngineName, code: string) => add(keyOf(error), engine, code)

  for (const state of [...Object.keys(Postgres.states), "25006"])
    failure(
      Postgres.refused(postgresError(state.padEnd(5, "0")), statementText),
      "PostgreSQL",
      stateName(state)
    )
  for (const [state, reason] of Object.entries(Postgres.connectionStates))
    add(`connection_failed/${reason}`, "PostgreSQL", `${state} (when connecting)`)
  add("connection_failed/authentication", "PostgreSQL", "class 28 (when connecting)")
  for (const [code, reason] of Object.entries(Postgres.systemCodes))
    add(`connection_failed/${reason}`, "PostgreSQL", code)

  for (const [number, reason] of SqlServer.queryReasons)
    add(`query_failed/${reason}`, "SQL Server", String(number))
  for (const number of SqlServer.refusedWrites) add("query_rejected/read_only", "SQL Server", String(number))
  for (const [number, reason] of SqlServer.loginReasons)
    add(`connection_failed/${reason}`, "SQL Server", `${number} (at login)`)
  for (const [code, reason] of Object.entries(SqlServer.socketReasons))
    add(`connection_failed/${reason}`, "SQL Server", code)

  for (const [, reason] of Sqlite.byMessage)
    add(`query_failed/${reason}`, "SQLite and workbooks", "SQLITE_ERROR (by its message)")
  for (const code of [...sqliteCodes, ...fileCodes])
    for (const stage of ["open", "run"] as const)
      failure(
        Sqlite.toFailure({ stage, code, message }),
        "SQLite and workbooks",
        stage === "open" && sqliteCodes.includes(code) && differs(code) ? `${code} (at opening)` : code
      )
  return codes
}

/** Whether it matters where SQLite's code is met. */
const differs = (code: string) =>
  keyOf(Sqlite.toFailure({ stage: "open", code, message })) !==
  keyOf(Sqlite.toFailure({ stage: "run", code, message }))

// ---------------------------------------------------------------------------------------------------------------------
// Text

const table = (headings: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>) =>
  [headings, headings.map(() => "---"), ...rows]
    .map((cells) => `| ${cells.map((text) => text.replaceAll("|", "\\|")).join(" | ")} |`)
    .join("\n")

/** Codes in order, those that hold in one place only behind the others. */
const list = (codes: ReadonlyArray<string> | undefined): string => {
  const byPlace = new Map<string, Array<string>>()
  for (const text of codes ?? []) {
    const [code = "", place = ""] = text.split(/ (?=\()/)
    byPlace.set(place, [...(byPlace.get(place) ?? []), code])
  }
  return [...byPlace]
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([place, names]) =>
      `${names
        .sort((a, b) => a.localeCompare(b, "en", { numeric: true }))
        .map((name) => `\`${name}\``)
        .join(" ")} ${place}`.trim()
    )
    .join("; ")
}

const section = <Tag extends QueryError["_tag"]>(
  { example, means, reasons, told }: Section<Tag>,
  codes: Codes
): string => {
  const rows = reasons.map((reason) => {
    const error = example(reason)
    const { action, means } = told[reason]
    return {
      reason,
      key: keyOf(error),
      cells: [`\`${reason}\``, means, isRetryable(error) ? "yes" : "no", action]
    }
  })
  const [first] = reasons
  const category = first === undefined ? "" : categoryOf(example(first))
  const coded = rows.flatMap(({ key, reason }) => {
    const byEngine = codes.get(key)
    return byEngine === undefined
      ? []
      : [[`\`${reason}\``, ...engines.map((engine) => list(byEngine.get(engine)) || "–")]]
  })
  return [
    `## ${category}`,
    means,
    table(
      ["Reason", "What it means", "Retryable", "What to do"],
      rows.map(({ cells }) => cells)
    ),
    ...(coded.length === 0 ? [] : ["Codes that lead there:", table(["Reason", ...engines], coded)])
  ].join("\n\n")
}

const codeOfProblem = (code: string) => code.toLowerCase().replaceAll("_", " ")

/** The whole document. */
export const errorsDoc = (): string => {
  const codes = collect()
  return `${[
    "# Errors",
    "<!-- Generated from the code by `npm run docs:errors`; a test fails when it is stale. -->",
    'A failed call is a normal MCP result with `isError: true` and one text block, `{"error":{…}}`, that names a category, a reason, whether the same call may succeed when it is sent again (`retryable`), what to do (`hint`), and the correlation id of its line in the log.',
    section(sections.InvalidInput, codes),
    section(sections.ConnectionFailed, codes),
    "Where neither the engine nor the system gives a code that is listed, a connection that failed is `closed`; codes of Node's TLS are `tls`.",
    "### Files that cannot be read",
    table(
      ["File", "What to do"],
      Object.entries(Excel.advice).map(([code, action]) => [codeOfProblem(code), action])
    ),
    section(sections.QueryRejected, codes),
    section(sections.QueryFailed, codes),
    "Codes that are not listed are `engine_error`. PostgreSQL's class is meant where its code is not listed itself; an SQLSTATE that a function raised by itself is `engine_error`, whatever it is.",
    `## ${internal.category}`,
    internal.means,
    table(
      ["Reason", "What it means", "Retryable", "What to do"],
      [[`\`${internal.reason}\``, internal.told.means, "no", internal.told.action]]
    )
  ].join("\n\n")}\n`
}
