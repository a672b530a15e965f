import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Excel from "../../src/Adapter/Excel.js"
import { ask } from "./Excel/Ask.js"
import { files, folder, judge } from "./Excel/Expected.js"

describe("the handed workbooks", () => {
  for (const [file, questions] of files)
    it.scopedLive(`${file}: ${questions.length} questions`, () =>
      Effect.gen(function* () {
        const adapter = yield* Excel.make(new Excel.Config({ file: `${folder}${file}`, engine: "excel" }))
        for (const question of questions)
          expect(judge(question, yield* ask(adapter, question.sql)), question.sql).toEqual([])
      })
    )
})
