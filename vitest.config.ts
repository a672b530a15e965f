import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"

const shared = { testTimeout: 60_000, hookTimeout: 120_000 }

/** The demo's database is written with the driver that this Node bears, as in the build. */
const driver = {
  alias: { "better-sqlite3": fileURLToPath(new URL("src/Adapter/Sqlite/Driver.ts", import.meta.url)) },
  server: { deps: { inline: ["@effect/sql-sqlite-node"] } }
}

export default defineConfig({
  test: {
    globalSetup: ["test/globalSetup.ts"],
    projects: [
      {
        extends: true,
        test: {
          ...shared,
          ...driver,
          name: "unit",
          include: ["test/**/*.test.ts"],
          exclude: ["test/**/*.integration.test.ts"]
        }
      },
      {
        extends: true,
        test: { ...shared, ...driver, name: "integration", include: ["test/**/*.integration.test.ts"] }
      }
    ]
  }
})
