import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as fc from "fast-check"
import { defaultId, parseLocation, redactLocation } from "../../src/Settings/Location.js"
import { fill, folder } from "../support/Folder.js"

const parsed = (text: string) => Either.getOrThrowWith(parseLocation(text), ({ found }) => new Error(found))

describe("locations", () => {
  it.each<readonly [string, string, string]>([
    ["shop.db", "sqlite", "shop.db"],
    ["./a/Shop.SQLITE", "sqlite", "./a/Shop.SQLITE"],
    ["/var/x.sqlite3", "sqlite", "/var/x.sqlite3"],
    ["book.xlsx", "excel", "book.xlsx"],
    ["book.XLSM", "excel", "book.XLSM"],
    ["form.xltx", "excel", "form.xltx"],
    // Taken, and refused with advice when they are read.
    ["old.xls", "excel", "old.xls"],
    ["old.xlsb", "excel", "old.xlsb"],
    ["old.ods", "excel", "old.ods"],
    ["list.csv", "csv", "list.csv"],
    ["list.tsv", "csv", "list.tsv"],
    ["sqlite:shop.data", "sqlite", "shop.data"],
    ["sqlite:/var/shop", "sqlite", "/var/shop"],
    ["sqlite:///var/shop.db", "sqlite", "/var/shop.db"],
    ["sqlite://shop%20one.db", "sqlite", "shop one.db"],
    ["SQLite:shop.db", "sqlite", "shop.db"],
    ["excel:book.zip", "excel", "book.zip"],
    ["csv:list.txt", "csv", "list.txt"]
  ])("%s is a file of %s", (text, engine, file) =>
    expect(parsed(text)).toEqual({ kind: "file", engine, file })
  )

  it.each<readonly [string, string]>([
    ["postgres://u:p@h/db", "postgres"],
    ["postgresql://h/db", "postgres"],
    ["POSTGRES://h/db", "postgres"],
    ["sqlserver://h;database=db", "mssql"],
    ["mssql://u:p@h/db", "mssql"],
    ["Server=h;Database=db;User Id=u;Password=p", "mssql"],
    ["Data Source = h", "mssql"]
  ])("%s is a URL of %s", (text, engine) => expect(parsed(text)).toEqual({ kind: "url", engine, url: text }))

  it.each([
    ["", /nothing/],
    ["sqlite:", /nothing/],
    ["notes.docx", /notes\.docx/],
    ["no-such-file", /no-such-file/],
    ["mysql://u:secret@h/db", /mysql/],
    ["mariadb://u:secret@h/db", /mariadb/],
    ["oracle://u:secret@h/db?password=secret", /oracle/],
    ["http://u:secret@h/x", /http/]
  ])("%s is none", (text, found) => {
    const fault = Either.getOrThrow(Either.flip(parseLocation(text)))
    expect(fault.found).toMatch(found)
    expect(fault.found).not.toContain("secret")
    expect(fault.expected).not.toBe("")
  })

  it("a file of any name that is there is taken for a database", () => {
    const file = fill(join(folder(), "shop.data"), "create table t (a)")
    expect(parsed(file)).toEqual({ kind: "file", engine: "sqlite", file })
  })

  it("every text is a location or a fault that says what was expected", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const result = parseLocation(text)
        if (Either.isLeft(result)) expect(result.left.expected).not.toBe("")
      })
    )
  })

  it("what may be said of a location leaves out everything before an @ and behind a ?", () => {
    const word = fc.string({ unit: fc.constantFrom("s", "e", "C", "9", ":", "%", "@"), minLength: 1 })
    fc.assert(
      fc.property(word, word, (before, behind) => {
        const shown = redactLocation(`oracle://zz${before}zz@host/db?zz${behind}zz`)
        expect(shown).not.toContain("zz")
      })
    )
  })
})

describe("the id of a source that was given none", () => {
  it.each([
    ["shop.db", "shop"],
    ["./deep/My Shop (2).sqlite", "my_shop_2"],
    ["C:\\data\\Shop.db", "shop"],
    ["sales.2024.q1.xlsx", "sales_2024_q1"],
    ["名前.db", "sqlite"],
    [".db", "sqlite"],
    ["postgres://u:p@h:5432/CRM-live?sslmode=require", "crm_live"],
    ["postgres://h", "postgres"],
    ["sqlserver://h;database=Erp One;user=u", "erp_one"],
    ["Server=h;Initial Catalog=erp", "erp"],
    ["mssql://h/erp%20two", "erp_two"]
  ])("of %s is %s", (text, id) => expect(defaultId(parsed(text))).toBe(id))

  it("is always an id", () => {
    fc.assert(
      fc.property(fc.string(), (name) => {
        expect(defaultId({ kind: "file", engine: "sqlite", file: `${name}.db` })).toMatch(/^[a-z0-9_]+$/)
        expect(defaultId({ kind: "url", engine: "postgres", url: `postgres://h/${name}` })).toMatch(
          /^[a-z0-9_]+$/
        )
      })
    )
  })
})
