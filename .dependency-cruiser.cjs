/** The import direction of ARCHITECTURE.md, checked by `npm run lint`. */
const rooms = ["Cli", "McpServer", "Tool", "Middle", "Engine", "Port"]
module.exports = { forbidden: [], options: { tsPreCompilationDeps: true } }
