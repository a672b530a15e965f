/** The import direction of ARCHITECTURE.md; `npm run lint` holds it. */

const engine = "^src/Adapter/(Sqlite|Postgres|SqlServer|Excel)(/|\\.ts$)"
const port = "^src/(Adapter|CatalogReader|Dialect|QueryError|QueryResult|Rows)\\.ts$"
const middle = "^src/(Policy|Engines|Catalog|Hint|Sources|CallLog|Settings)(/|\\.ts$)"
const tools = "^src/(Tool|Tools)(/|\\.ts$)"
const server = "^src/McpServer(/|\\.ts$)"
const top = "^src/(Cli/|main\\.ts$)"

/** `from` may not import what stands above it. */
const below = (name, from, ...above) => ({
  name,
  severity: "error",
  comment: `${name} is imported by what stands above it, and imports only what stands below.`,
  from: { path: from },
  to: { path: above }
})

module.exports = {
  forbidden: [
    below("port", port, engine, middle, tools, server, top),
    below("engine", engine, middle, tools, server, top),
    below("middle", middle, tools, server, top),
    below("tools", tools, server, top),
    below("server", server, top),
    {
      name: "engines-apart",
      severity: "error",
      comment: "An engine does not know another; workbooks run on SQLite's child processes.",
      from: { path: "^src/Adapter/(Sqlite|Postgres|SqlServer)(/|\\.ts$)" },
      to: { path: engine, pathNot: "^src/Adapter/$1(/|\\.ts$)" }
    },
    {
      name: "drivers-in-adapters",
      severity: "error",
      comment: "A driver is imported by its own engine's adapter only.",
      from: { path: "^src", pathNot: engine },
      to: { path: "node_modules/(pg|pg-protocol|tedious|better-sqlite3)/" }
    },
    {
      name: "grammar-in-policy",
      severity: "error",
      from: { path: "^src", pathNot: "^src/Policy/PostgresGrammar\\.ts$" },
      to: { path: "node_modules/libpg-query/" }
    },
    {
      name: "sdk-in-server",
      severity: "error",
      comment: "The protocol's SDK is known to the server room, and to the demo as a client.",
      from: { path: "^src", pathNot: [server, "^src/Cli/Demo\\.ts$"] },
      to: { path: "node_modules/@modelcontextprotocol/" }
    },
    {
      name: "no-circular",
      severity: "error",
      from: {},
      to: {
        circular: true,
        dependencyTypesNot: ["type-only"],
        viaOnly: { dependencyTypesNot: ["type-only"] }
      }
    },
    {
      name: "no-orphans",
      severity: "error",
      from: {
        orphan: true,
        pathNot: [
          "^src/(main|index|adapters|server)\\.ts$",
          "^src/Version\\.ts$",
          "^src/Cli/Help\\.ts$",
          "^src/Audit/"
        ]
      },
      to: {}
    }
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    tsConfig: { fileName: "tsconfig.json" },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "require", "node", "default"]
    }
  }
}
