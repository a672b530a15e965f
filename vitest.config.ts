import { defineConfig } from "vitest/config"

const shared = { testTimeout: 60_000, hookTimeout: 120_000 }

export default defineConfig({
  test: {
    globalSetup: ["test/globalSetup.ts"],
    projects: [
      {
        extends: true,
        test: {
          ...shared,
          name: "unit",
          include: ["test/**/*.test.ts"],
          exclude: ["test/**/*.integration.test.ts"]
        }
      },
      { extends: true, test: { ...shared, name: "integration", include: ["test/**/*.integration.test.ts"] } }
    ]
  }
})
