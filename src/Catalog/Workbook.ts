export { reader } from "./Sqlite.js"
