/**
 * Reads a statement with PostgreSQL's own grammar and says whether it is one single read.
 *
 * The engine runs every admitted statement in a read-only transaction that is rolled back, and empties the session
 * afterwards. What is refused here is therefore what such a transaction lets through: statements that are no reads,
 * and functions whose effects do not end with it.
 */
import { createRequire } from "node:module"
import * as Effect from "effect/Effect"
import type { Verdict } from "../Dialect.js"
import { isJsonObject, type JsonObject } from "../JsonObject.js"
import { QueryRejected } from "../QueryError.js"

type Grammar = typeof import("libpg-query")
type Node = JsonObject

const rejected = (reason: QueryRejected["reason"], message: string) => new QueryRejected({ reason, message })

// --- The grammar's instance ------------------------------------------------------------------------------------------

const load = createRequire(import.meta.url)
let instance: Grammar | undefined

/**
 * The parser is a WebAssembly module with memory of its own. A statement that nests so deeply that it exhausts the
 * stack leaves that memory in disorder (the next statement may never come back), so the instance is thrown away then.
 */
const discard = () => {
  instance = undefined
  const entry = load.resolve("libpg-query")
  for (const path of Object.keys(load.cache)) {
    if (path === entry || path === entry.replace(/index\.cjs$/, "libpg-query.js")) delete load.cache[path]
  }
}

const grammar: Effect.Effect<Grammar> = Effect.suspend(() => {
  if (instance !== undefined) return Effect.succeed(instance)
  return Effect.promise(async () => {
    const loaded: Grammar = load("libpg-query")
    await loaded.loadModule()
    instance = loaded
    return loaded
  })
})

/** The statements of a text, or null where this grammar cannot read it. */
const parse = ({ parseSync, hasSqlDetails }: Grammar, sql: string): ReadonlyArray<Node> | null => {
  if (sql === "") return []
  try {
    const { stmts } = parseSync(sql)
    return (stmts ?? []).flatMap(({ stmt }) => (isJsonObject(stmt) ? [stmt] : []))
  } catch (error) {
    if (!hasSqlDetails(error)) discard()
    return null
  }
}

// --- Statements ------------------------------------------------------------------------------------------------------

/** Kinds that write data, definitions or rights. Every other kind that is no read acts on the session or the server. */
const writes =
  /^(Insert|Update|Delete|Merge|Truncate|Create|Alter|Drop|Grant|Comment|Rename|Rule|Index|View|Define|Composite|Refresh|SecLabel|Import|Reassign)/

const dataModifying = new Set(["InsertStmt", "UpdateStmt", "DeleteStmt", "MergeStmt"])

const kindOf = (statement: Node): string => Object.keys(statement)[0] ?? ""

/** Where the grammar's own name is not what people say. */
const named: Record<string, string> = {
  CreateStmt: "CREATE TABLE",
  IndexStmt: "CREATE INDEX",
  ViewStmt: "CREATE VIEW",
  RuleStmt: "CREATE RULE",
  DefineStmt: "CREATE",
  RenameStmt: "ALTER … RENAME",
  RefreshMatViewStmt: "REFRESH MATERIALIZED VIEW",
  VariableSetStmt: "SET and RESET",
  TransactionStmt: "Transaction control",
  ExecuteStmt: "EXECUTE",
  DoStmt: "DO",
  ClosePortalStmt: "CLOSE",
  DeclareCursorStmt: "DECLARE CURSOR",
  VacuumStmt: "VACUUM and ANALYZE",
  CheckPointStmt: "CHECKPOINT",
  AlterSystemStmt: "ALTER SYSTEM",
  ConstraintsSetStmt: "SET CONSTRAINTS"
}

/** `CreateTableAsStmt` as `CREATE TABLE AS`. */
const spoken = (kind: string): string =>
  named[kind] ??
  kind
    .replace(/Stmt$/, "")
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .toUpperCase()

const advice: Record<string, string> = {
  CopyStmt: "Use SELECT to read the rows.",
  PrepareStmt: "Send the statement itself, with values in params.",
  ExecuteStmt: "Send the statement itself, with values in params.",
  DeclareCursorStmt: "Send the SELECT itself; maxRows limits the answer.",
  FetchStmt: "Send the SELECT itself; maxRows limits the answer.",
  CallStmt: "Read with SELECT.",
  TransactionStmt: "Every statement runs in a transaction of its own.",
  VariableSetStmt: "Name schemas and time zones in the statement itself."
}

const readsOnly = "Only SELECT, VALUES, TABLE, SHOW and EXPLAIN of those are allowed."

const refuseKind = (kind: string): QueryRejected =>
  writes.test(kind) && kind !== "AlterSystemStmt"
    ? rejected("read_only", `This source is read-only: ${spoken(kind)} is not allowed. ${readsOnly}`)
    : rejected(
        "statement_type",
        `${spoken(kind)} is not allowed here: it is no read. ${advice[kind] ?? readsOnly}`
      )

// --- Functions -------------------------------------------------------------------------------------------------------

interface Rule {
  readonly names: RegExp
  /** Completes "The function f is not available here: …". */
  readonly because: string
  readonly instead?: string
  /** Refused only where it has this many arguments. */
  readonly arity?: number
}

/** By the function's last name. What they do lasts beyond the rolled-back transaction, or reaches outside the database. */
const refusedFunctions: ReadonlyArray<Rule> = [
  {
    names: /^(set_config|setseed|set_limit)$/,
    because: "it changes the session",
    instead: "Use current_setting to read a setting."
  },
  {
    names: /^isn_weak$/,
    arity: 1,
    because: "it changes the session",
    instead: "Without an argument it reads."
  },
  {
    names: /^(txid_current|pg_current_xact_id)$/,
    because: "it takes a transaction number, which no rollback gives back",
    instead: "Use pg_current_snapshot, or pg_current_xact_id_if_assigned."
  },
  {
    names: /^(nextval|setval)$/,
    because: "it moves a sequence",
    instead: "Read last_value from the sequence as from a table."
  },
  {
    names: /^(pg_(try_)?advisory_.*|bt_index_parent_check)$/,
    because: "it takes or frees locks that other sessions wait for"
  },
  { names: /^pg_notify$/, because: "it sends messages to other sessions" },
  {
    names: /^(lo_(?!get$).*|lowrite|loread)$/,
    because: "it opens or changes large objects",
    instead: "Use lo_get to read one."
  },
  {
    names:
      /^(pg_read_.*|pg_ls_.*|pg_stat_file|pg_file_.*|pg_logdir_ls|pg_hba_file_rules|pg_ident_file_mappings|pg_show_all_file_settings)$/,
    because: "it reads or writes files of the database server"
  },
  {
    names: /^(pg_terminate_|pg_cancel_)/,
    because: "it ends the work of other sessions",
    instead: "Read pg_stat_activity to see them."
  },
  {
    names: /^(dblink|dblink_.*|postgres_fdw_disconnect.*|oracle_(execute|close_connections))$/,
    because: "it acts through another connection, outside the read-only transaction"
  },
  {
    names: /^(https?|http_(get|post|put|patch|delete|head)|urlencode_http)$/,
    because: "it sends requests over the network"
  },
  {
    names: /^(query_to_xml.*|cursor_to_xml.*|ts_stat|crosstab.*|connectby|xpath_table|_?pgr_.*)$/,
    because: "it runs SQL that stands in a string, which cannot be checked",
    instead: "Write that SQL as a subquery."
  },
  {
    names: /^ts_rewrite$/,
    arity: 2,
    because: "with two arguments it runs SQL that stands in a string, which cannot be checked",
    instead: "Use ts_rewrite(query, target, substitute)."
  },
  {
    names: /^(pg_background_.*|run_command_on_.*|query_export_to_s3|table_import_from_s3)$/,
    because: "it runs work outside the read-only transaction"
  },
  {
    names:
      /^(pg_reload_conf|pg_rotate_logfile.*|pg_log_.*|pg_promote|pg_switch_(wal|xlog)|pg_create_.*|pg_drop_.*|pg_copy_.*|pg_logical_.*|pg_replication_slot_advance|pg_replication_origin_(advance|create|drop|session_(setup|reset)|xact_.*)|pg_sync_replication_slots|pg_(wal|xlog)_replay_(pause|resume)|pg_backup_.*|pg_(start|stop)_backup.*|pg_export_snapshot|pg_import_.*|pg_nextoid|pg_stop_making_pinned_objects|pg_extension_config_dump|binary_upgrade_.*)$/,
    because: "it acts on the whole database server"
  },
  {
    names:
      /^(pg_stat_reset.*|pg_stat_force_next_flush|pg_(?!stat_get_).*_reset(_.*)?|pg_(set|restore|clear)_(relation|attribute|extended)_stats|brin_(summarize|desummarize)_.*|gin_clean_pending_list|pg_truncate_visibility_map|heap_force_.*|pg_buffercache_(evict|mark).*|pg_prewarm|autoprewarm_.*)$/,
    because: "it changes statistics, caches or storage"
  }
]

/** Schemas whose functions all act outside the database. */
const refusedSchemas = new Set([
  "dblink",
  "cron",
  "net",
  "aws_s3",
  "aws_lambda",
  "aws_commons",
  "utl_file",
  "dbms_pipe",
  "dbms_alert",
  "amqp"
])

/** Views over functions of the list above. */
const refusedViews = new Set(["pg_hba_file_rules", "pg_ident_file_mappings", "pg_file_settings"])

const stringsOf = (parts: unknown): ReadonlyArray<string> =>
  (Array.isArray(parts) ? parts : []).flatMap((part: unknown) =>
    isJsonObject(part) && isJsonObject(part["String"]) && typeof part["String"]["sval"] === "string"
      ? [part["String"]["sval"]]
      : []
  )

const refuseFunction = (name: string, because: string, instead = "Leave it out.") =>
  rejected("function_denied", `The function ${name} is not available here: ${because}. ${instead}`)

const inspectFunction = (name: string, takes: (arity: number) => boolean): QueryRejected | null => {
  const rule = refusedFunctions.find(
    ({ names, arity }) => names.test(name) && (arity === undefined || takes(arity))
  )
  return rule === undefined ? null : refuseFunction(name, rule.because, rule.instead)
}

const inspectCall = (call: Node): QueryRejected | null => {
  const names = stringsOf(call["funcname"])
  const name = names.at(-1) ?? ""
  const schema = names.at(-2)
  if (schema !== undefined && refusedSchemas.has(schema)) {
    return refuseFunction(name, "it acts outside this database")
  }
  const args = Array.isArray(call["args"]) ? call["args"].length : 0
  return inspectFunction(name, (arity) => arity === args || call["func_variadic"] === true)
}

/** Refused functions that take no single argument, or a row of a type of their own, by whose names columns are called. */
const columnNames = /^(https?|lo_(?!(creat|create|unlink|import|close|tell|tell64)$).*)$/

/** `(5).pg_advisory_lock` and, of a function in FROM, `t.pg_advisory_lock` call a function as if it were a column. */
const inspectAttribute = (name: string): QueryRejected | null =>
  columnNames.test(name) ? null : inspectFunction(name, (arity) => arity === 1)

/** What may stand in front of a function that is written as a column: the functions in FROM, which give no rows but values. */
class ScalarRelations {
  /** By name, for each relation the columns that are known; they come before functions. */
  readonly #named = new Map<string | undefined, Array<ReadonlySet<string>>>()

  add(range: Node): void {
    const alias = isJsonObject(range["alias"]) ? range["alias"] : undefined
    const given = alias?.["aliasname"]
    const name = typeof given === "string" ? given : undefined
    const definitions = Array.isArray(range["coldeflist"]) ? range["coldeflist"] : []
    const columns = new Set([
      ...stringsOf(alias?.["colnames"]),
      ...definitions.flatMap((column: unknown) =>
        isJsonObject(column) &&
        isJsonObject(column["ColumnDef"]) &&
        typeof column["ColumnDef"]["colname"] === "string"
          ? [column["ColumnDef"]["colname"]]
          : []
      )
    ])
    this.#named.set(name, [...(this.#named.get(name) ?? []), columns])
  }

  /** Whether `qualifier.column` may be a call. One without an alias has the name of its function, or of none. */
  mayCall(qualifier: string, column: string): boolean {
    return [undefined, qualifier].some((name) =>
      this.#named.get(name)?.some((columns) => !columns.has(column))
    )
  }
}

const inspectRelation = (relation: Node): QueryRejected | null => {
  const { relname, schemaname } = relation
  return typeof relname === "string" &&
    refusedViews.has(relname) &&
    (schemaname === undefined || schemaname === "pg_catalog")
    ? rejected(
        "function_denied",
        `The view ${relname} is not available here: it reads files of the database server. Read pg_settings instead.`
      )
    : null
}

// --- The verdict -----------------------------------------------------------------------------------------------------

/** Writes come before functions, since a statement that writes is refused whatever it calls. */
const inspectTree = (statement: Node): QueryRejected | null => {
  let denied: QueryRejected | null = null
  const scalars = new ScalarRelations()
  const qualified: Array<readonly [qualifier: string, column: string]> = []
  const open: Array<unknown> = [statement]
  while (open.length > 0) {
    const value = open.pop()
    if (Array.isArray(value)) {
      open.push(...value)
      continue
    }
    if (!isJsonObject(value)) continue
    for (const [key, child] of Object.entries(value)) {
      if (dataModifying.has(key)) {
        return rejected(
          "read_only",
          `This source is read-only: ${spoken(key)} is not allowed in any part of a statement. ${readsOnly}`
        )
      }
      if (key === "intoClause") {
        return rejected("read_only", "This source is read-only: SELECT INTO makes a table. Leave INTO out.")
      }
      if (key === "lockingClause") {
        return rejected(
          "read_only",
          "This source is read-only: FOR UPDATE and FOR SHARE lock rows. Leave the clause out."
        )
      }
      if (isJsonObject(child)) {
        if (key === "FuncCall") denied ??= inspectCall(child)
        if (key === "RangeVar") denied ??= inspectRelation(child)
        if (key === "RangeFunction") scalars.add(child)
        if (key === "A_Indirection") {
          for (const name of stringsOf(child["indirection"])) denied ??= inspectAttribute(name)
        }
        if (key === "ColumnRef") {
          const [column, qualifier] = [...stringsOf(child["fields"])].reverse()
          if (column !== undefined && qualifier !== undefined) qualified.push([qualifier, column])
        }
      }
      open.push(child)
    }
  }
  for (const [qualifier, column] of qualified) {
    if (denied !== null) break
    if (scalars.mayCall(qualifier, column)) denied = inspectAttribute(column)
  }
  return denied
}

const judge = (statements: ReadonlyArray<Node>): QueryRejected | null => {
  const [statement, second] = statements
  if (statement === undefined)
    return rejected("statement_type", `There is no statement in the text. ${readsOnly}`)
  if (second !== undefined) {
    return rejected(
      "multiple_statements",
      "The text holds more than one statement. Send one statement a call, without anything after its semicolon."
    )
  }
  const kind = kindOf(statement)
  const body = statement[kind]
  if (kind === "SelectStmt" || kind === "VariableShowStmt") return inspectTree(statement)
  if (kind === "ExplainStmt" && isJsonObject(body) && isJsonObject(body["query"])) {
    const inner = kindOf(body["query"])
    return inner === "SelectStmt" ? inspectTree(body["query"]) : refuseKind(inner)
  }
  // COPY (DELETE …) is above all a write.
  if (kind === "CopyStmt") return writeInside(statement) ?? refuseKind(kind)
  return refuseKind(kind)
}

const writeInside = (statement: Node): QueryRejected | null => {
  const refusal = inspectTree(statement)
  return refusal?.reason === "read_only" ? refusal : null
}

/**
 * PostgreSQL's scanner takes all operator characters that follow for one operator before it sees that a comment begins,
 * or that a plus or minus at its end is one of its own. Such characters in an unbroken row cost it time by the square of
 * their length, during which nothing else is served.
 */
const isCostly = (sql: string): boolean => {
  let steps = 0
  for (const [run] of sql.matchAll(/[-+*/<>=~!@#%^&|`?]{64,}/g)) {
    for (let at = run.indexOf("/*"); at >= 0; at = run.indexOf("/*", at + 1)) steps += run.length - at
    // What follows two dashes is a comment, and is passed over.
    const [operators = ""] = run.split("--", 1)
    steps += operators.length * operators.replace(/[^+-]/g, "").length
  }
  return steps > mostSteps
}

/** About a tenth of a second. */
const mostSteps = 20_000_000

/**
 * The verdict on a text. What this grammar cannot read may be shown to the engine, whose own parser then says what is
 * wrong, but must not be executed.
 */
export const inspect = (sql: string): Verdict =>
  sql.includes("\0")
    ? Effect.fail(
        rejected(
          "unverifiable",
          "The statement holds a NUL character, which PostgreSQL cannot read. Remove it."
        )
      )
    : isCostly(sql)
      ? Effect.fail(
          rejected(
            "unverifiable",
            "The statement holds too many operators or comments in an unbroken row. Leave them out, or put spaces between them."
          )
        )
      : Effect.flatMap(grammar, (grammar) => {
          const statements = parse(grammar, sql)
          if (statements === null) return Effect.succeed("prepare_only" as const)
          const refusal = judge(statements)
          return refusal === null ? Effect.succeed("execute" as const) : Effect.fail(refusal)
        })
