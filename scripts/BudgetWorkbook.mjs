// The demo's workbook: a budget as an office keeps one, with formulas, dates, a table and a hidden sheet.
import ExcelJS from "exceljs"

const departments = ["Operations", "Marketing", "Support", "Product"]
const planned = { Operations: 42_000, Marketing: 18_500.5, Support: 12_250.25, Product: 36_800 }

const date = (month, day) => new Date(Date.UTC(2025, month - 1, day))

const fill = (book) => {
  const spending = book.addWorksheet("Spending")
  const entries = departments.flatMap((department, index) =>
    Array.from({ length: 12 }, (_, month) => {
      const share = planned[department] / 12
      const amount = Math.round(share * (0.8 + ((index * 7 + month * 5) % 9) / 20) * 100) / 100
      return [
        date(month + 1, 5 + index),
        department,
        month % 4 === 3 ? null : `INV-${2025_000 + month * 4 + index}`,
        amount
      ]
    })
  )
  spending.addTable({
    name: "SpendingTable",
    ref: "A1",
    headerRow: true,
    columns: [{ name: "Date" }, { name: "Department" }, { name: "Invoice" }, { name: "Amount" }],
    rows: entries
  })
  spending.getColumn(1).numFmt = "yyyy-mm-dd"
  spending.getColumn(4).numFmt = "#,##0.00"

  const budget = book.addWorksheet("Budget 2025")
  budget.addRow(["Department", "Planned", "Spent", "Left"])
  for (const [index, department] of departments.entries()) {
    const row = index + 2
    const spent = entries.reduce((sum, entry) => (entry[1] === department ? sum + Number(entry[3]) : sum), 0)
    const rounded = Math.round(spent * 100) / 100
    budget.addRow([
      department,
      planned[department],
      { formula: `SUMIF(Spending!B:B,A${row},Spending!D:D)`, result: rounded },
      { formula: `B${row}-C${row}`, result: Math.round((planned[department] - rounded) * 100) / 100 }
    ])
  }

  const rates = book.addWorksheet("Rates", { state: "hidden" })
  rates.addRows([
    ["Currency", "Per euro"],
    ["USD", 1.08],
    ["JPY", 163.5]
  ])
}

/** The writer stamps each part with the time of the day; the same sources should make the same file. */
const withoutTimes = (zip) => {
  const start1980 = 0x00210000
  const end = zip.lastIndexOf("PK\u0005\u0006", undefined, "latin1")
  let entry = zip.readUInt32LE(end + 16)
  for (let left = zip.readUInt16LE(end + 10); left > 0; left--) {
    zip.writeUInt32LE(start1980, entry + 12)
    zip.writeUInt32LE(start1980, zip.readUInt32LE(entry + 42) + 10)
    entry += 46 + [28, 30, 32].reduce((sum, at) => sum + zip.readUInt16LE(entry + at), 0)
  }
  return zip
}

/** The file's bytes. */
export const budgetWorkbook = async () => {
  const book = new ExcelJS.Workbook()
  book.creator = "mcp-query demo"
  book.created = date(1, 1)
  book.modified = date(1, 1)
  fill(book)
  return withoutTimes(Buffer.from(await book.xlsx.writeBuffer()))
}
