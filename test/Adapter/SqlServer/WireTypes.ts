/** Every wire type of TDS 7.4 with its bytes, and the cell that they mean by the contract. */
import * as Tds from "./Tds.js"

export interface WireCase {
  readonly name: string
  readonly column: Tds.Column
  readonly value: Buffer
  readonly cell: unknown
  readonly type: string
  /** The bytes of a null, where the type has one outside of a row's bitmap. */
  readonly null?: Buffer
}

const {
  chunks,
  counted,
  f32,
  f64,
  hex,
  i16,
  i32,
  i64,
  latin1,
  nullChunks,
  pointed,
  shortCounted,
  u16,
  u32,
  u8,
  ucs2,
  utf8
} = Tds

const noLength = u8(0)
const nullShort = u16(0xffff)

const one = (
  name: string,
  type: Buffer,
  value: Buffer,
  cell: unknown,
  columnType: string,
  more: { readonly userType?: number; readonly table?: string; readonly null?: Buffer } = {}
): WireCase => {
  const { null: none, ...column } = more
  return {
    name,
    column: { name, type, ...column },
    value,
    cell,
    type: columnType,
    ...(none === undefined ? {} : { null: none })
  }
}

const widths = (name: string, token: number, size: number, value: Buffer, cell: unknown, type: string) =>
  one(name, Buffer.from([token, size]), counted(value), cell, type, { null: noLength })

const number = (
  name: string,
  token: number,
  size: 5 | 9 | 13 | 17,
  scale: number,
  value: bigint,
  cell: string
) =>
  one(
    name,
    Buffer.from([token, size, 38, scale]),
    counted(Tds.decimal(value, size)),
    cell,
    token === 0x6a ? "decimal" : "numeric",
    { null: noLength }
  )

const time = (name: string, token: number, scale: number, value: Buffer, cell: string, type: string) =>
  one(name, Buffer.from([token, scale]), counted(value), cell, type, { null: noLength })

const dt2 = (name: string, scale: number, date: string, clock: string, cell: string) =>
  time(name, 0x2a, scale, Buffer.concat([Tds.ticks(clock, scale), Tds.days3(date)]), cell, "datetime2")

const dto = (name: string, scale: number, date: string, clock: string, minutes: number, cell: string) =>
  time(
    name,
    0x2b,
    scale,
    Buffer.concat([Tds.ticks(clock, scale), Tds.days3(date), i16(minutes)]),
    cell,
    "datetimeoffset"
  )

const clr = (name: string, type: string, bytes: string, cell: string) =>
  one(
    name,
    Buffer.concat([
      u8(0xf0),
      u16(0xffff),
      Tds.shortText("db"),
      Tds.shortText("sys"),
      Tds.shortText(type),
      Tds.longText("Microsoft.SqlServer.Types")
    ]),
    chunks(hex(bytes)),
    cell,
    type,
    { null: nullChunks }
  )

const variantType = Buffer.concat([u8(0x62), u32(8009)])
const variant = (name: string, base: number, properties: Buffer, value: Buffer, cell: unknown) =>
  one(name, variantType, Tds.variant(base, properties, value), cell, "sql_variant", { null: u32(0) })

const none = Buffer.alloc(0)
const charProperties = (collation: Buffer) => Buffer.concat([collation, u16(8000)])
const max = (token: number, collation: Buffer) => Buffer.concat([u8(token), u16(0xffff), collation])

const money = (units: bigint) => Buffer.concat([i32(Number(units >> 32n)), u32(Number(units & 0xffff_ffffn))])

export const wireCases: ReadonlyArray<WireCase> = [
  one("tinyint", u8(0x30), u8(255), 255, "tinyint"),
  one("smallint", u8(0x34), i16(-32768), -32768, "smallint"),
  one("int", u8(0x38), i32(-2147483648), -2147483648, "int"),
  one("bigint", u8(0x7f), i64(-9007199254740992n), "-9007199254740992", "bigint"),
  one("bit", u8(0x32), u8(1), true, "bit"),
  one("real", u8(0x3b), f32(0.1), 0.1, "real"),
  one("float", u8(0x3e), f64(0.1 + 0.2), 0.30000000000000004, "float"),
  one("smallmoney", u8(0x7a), i32(-2147483648), "-214748.3648", "smallmoney"),
  one("money", u8(0x3c), money(-(2n ** 63n)), "-922337203685477.5808", "money"),
  one(
    "smalldatetime",
    u8(0x3a),
    Buffer.concat([u16(65535), u16(1439)]),
    "2079-06-06T23:59:00",
    "smalldatetime"
  ),
  one("datetime", u8(0x3d), Buffer.concat([i32(-53690), u32(0)]), "1753-01-01T00:00:00", "datetime"),

  widths("intn 1", 0x26, 1, u8(0), 0, "tinyint"),
  widths("intn 2", 0x26, 2, i16(32767), 32767, "smallint"),
  widths("intn 4", 0x26, 4, i32(2147483647), 2147483647, "int"),
  widths("intn 8 safe", 0x26, 8, i64(9007199254740991n), 9007199254740991, "bigint"),
  widths("intn 8", 0x26, 8, i64(2n ** 63n - 1n), "9223372036854775807", "bigint"),
  widths("bitn", 0x68, 1, u8(0), false, "bit"),
  widths("floatn 4", 0x6d, 4, f32(123456.79), 123456.79, "real"),
  widths("floatn 4 third", 0x6d, 4, f32(1 / 3), 0.33333334, "real"),
  widths("floatn 4 largest", 0x6d, 4, f32(3.4028234663852886e38), 3.4028235e38, "real"),
  widths("floatn 4 smallest", 0x6d, 4, f32(1.401298464324817e-45), 1e-45, "real"),
  widths("floatn 8", 0x6d, 8, f64(1.7976931348623157e308), 1.7976931348623157e308, "float"),
  widths("floatn 8 nan", 0x6d, 8, f64(Number.NaN), "NaN", "float"),
  widths("floatn 8 infinity", 0x6d, 8, f64(Number.NEGATIVE_INFINITY), "-Infinity", "float"),
  widths("moneyn 4", 0x6e, 4, i32(1), "0.0001", "smallmoney"),
  widths("moneyn 8", 0x6e, 8, money(2n ** 63n - 1n), "922337203685477.5807", "money"),
  widths("moneyn 8 small", 0x6e, 8, money(-100n), "-0.0100", "money"),
  widths(
    "datetimn 4",
    0x6f,
    4,
    Buffer.concat([u16(45349), u16(785)]),
    "2024-02-29T13:05:00",
    "smalldatetime"
  ),
  widths(
    "datetimn 8",
    0x6f,
    8,
    Buffer.concat([i32(45349), u32(14130337)]),
    "2024-02-29T13:05:01.123",
    "datetime"
  ),
  widths(
    "datetimn 8 last",
    0x6f,
    8,
    Buffer.concat([i32(2958463), u32(25919999)]),
    "9999-12-31T23:59:59.997",
    "datetime"
  ),

  number("decimal 5", 0x6a, 5, 2, -50n, "-0.50"),
  number("decimal 9", 0x6a, 9, 0, 999999999999999999n, "999999999999999999"),
  number("decimal 13", 0x6a, 13, 19, 12345678901234567891234567890n, "1234567890.1234567891234567890"),
  number(
    "decimal 17",
    0x6a,
    17,
    38,
    12345678901234567890123456789012345678n,
    "0.12345678901234567890123456789012345678"
  ),
  number("decimal 17 negative", 0x6a, 17, 0, -(10n ** 38n) + 1n, `-${"9".repeat(38)}`),
  number("numeric zero", 0x6c, 5, 3, 0n, "0.000"),
  number("numeric 5", 0x6c, 5, 2, 110n, "1.10"),

  time("time 0", 0x29, 0, Tds.ticks("00:00:00", 0), "00:00:00", "time"),
  time("time 3", 0x29, 3, Tds.ticks("13:05:01.500", 3), "13:05:01.5", "time"),
  time("time 7", 0x29, 7, Tds.ticks("23:59:59.9999999", 7), "23:59:59.9999999", "time"),
  time("time 7 least", 0x29, 7, Tds.ticks("00:00:00.0000001", 7), "00:00:00.0000001", "time"),
  one("date first", u8(0x28), counted(Tds.days3("0001-01-01")), "0001-01-01", "date", { null: noLength }),
  one("date last", u8(0x28), counted(Tds.days3("9999-12-31")), "9999-12-31", "date", { null: noLength }),
  one("date proleptic", u8(0x28), counted(Tds.days3("1582-10-10")), "1582-10-10", "date", { null: noLength }),
  dt2("datetime2 0", 0, "2024-02-29", "13:05:01", "2024-02-29T13:05:01"),
  dt2("datetime2 2", 2, "2024-02-29", "13:05:01.10", "2024-02-29T13:05:01.1"),
  dt2("datetime2 4", 4, "2024-03-10", "02:30:00.0010", "2024-03-10T02:30:00.001"),
  dt2("datetime2 7", 7, "0001-01-01", "00:00:00.0000001", "0001-01-01T00:00:00.0000001"),
  dt2("datetime2 7 last", 7, "9999-12-31", "23:59:59.9999999", "9999-12-31T23:59:59.9999999"),
  dto("datetimeoffset east", 7, "2024-02-28", "22:05:01.1234567", 840, "2024-02-29T12:05:01.1234567+14:00"),
  dto("datetimeoffset west", 0, "2024-02-29", "02:05:01", -480, "2024-02-28T18:05:01-08:00"),
  dto("datetimeoffset half", 3, "2024-02-29", "07:35:01.500", 330, "2024-02-29T13:05:01.5+05:30"),
  dto("datetimeoffset negative half", 7, "2024-03-10", "06:00:00", -210, "2024-03-10T02:30:00-03:30"),
  dto("datetimeoffset zero", 7, "0001-01-01", "00:00:00", 0, "0001-01-01T00:00:00+00:00"),

  one(
    "uniqueidentifier",
    Buffer.from([0x24, 16]),
    counted(hex("99bceea0 0b9c f84e bb6d 6bb9bd380a11")),
    "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    "uniqueidentifier",
    { null: noLength }
  ),

  one("varchar", Buffer.concat([u8(0xa7), u16(20), latin1]), shortCounted(hex("e980")), "é€", "varchar", {
    null: nullShort
  }),
  one(
    "varchar utf-8",
    Buffer.concat([u8(0xa7), u16(20), utf8]),
    shortCounted(Buffer.from("é😀")),
    "é😀",
    "varchar",
    {
      null: nullShort
    }
  ),
  one(
    "char",
    Buffer.concat([u8(0xaf), u16(5), latin1]),
    shortCounted(Buffer.from("ab   ")),
    "ab   ",
    "char",
    {
      null: nullShort
    }
  ),
  one(
    "nvarchar",
    Tds.nvarchar(40),
    Tds.nvarcharValue('it\'s "q" \\ é😀中'),
    'it\'s "q" \\ é😀中',
    "nvarchar",
    {
      null: nullShort
    }
  ),
  one("nvarchar empty", Tds.nvarchar(40), u16(0), "", "nvarchar", { null: nullShort }),
  one("nchar", Buffer.concat([u8(0xef), u16(6), latin1]), Tds.nvarcharValue("ü  "), "ü  ", "nchar", {
    null: nullShort
  }),
  one("varbinary", Buffer.concat([u8(0xa5), u16(8)]), shortCounted(hex("00ff")), "AP8=", "varbinary", {
    null: nullShort
  }),
  one("varbinary empty", Buffer.concat([u8(0xa5), u16(8)]), u16(0), "", "varbinary", { null: nullShort }),
  one("binary", Buffer.concat([u8(0xad), u16(6)]), shortCounted(hex("deadbeef0000")), "3q2+7wAA", "binary", {
    null: nullShort
  }),
  one(
    "rowversion",
    Buffer.concat([u8(0xad), u16(8)]),
    shortCounted(hex("00000000000007d1")),
    "AAAAAAAAB9E=",
    "timestamp",
    {
      userType: 80,
      null: nullShort
    }
  ),

  one("varchar(max)", max(0xa7, latin1), chunks(hex("e980e9"), 2), "é€é", "varchar", { null: nullChunks }),
  one("varchar(max) utf-8", max(0xa7, utf8), chunks(Buffer.from("é😀"), 1), "é😀", "varchar", {
    null: nullChunks
  }),
  one("nvarchar(max)", max(0xe7, latin1), chunks(ucs2("é😀中"), 3), "é😀中", "nvarchar", {
    null: nullChunks
  }),
  one(
    "nvarchar(max) of unknown length",
    max(0xe7, latin1),
    chunks(ucs2("abc"), 4, false),
    "abc",
    "nvarchar",
    {
      null: nullChunks
    }
  ),
  one("nvarchar(max) empty", max(0xe7, latin1), chunks(none), "", "nvarchar", { null: nullChunks }),
  one("varbinary(max)", max(0xa5, none), chunks(hex("010203"), 1), "AQID", "varbinary", { null: nullChunks }),
  one("xml", Buffer.from([0xf1, 0]), chunks(ucs2('\ufeff<a b="1">x</a>')), '<a b="1">x</a>', "xml", {
    null: nullChunks
  }),
  one(
    "xml of a schema",
    Buffer.concat([Buffer.from([0xf1, 1]), Tds.shortText("db"), Tds.shortText("dbo"), Tds.longText("c")]),
    chunks(ucs2("<a/>")),
    "<a/>",
    "xml",
    { null: nullChunks }
  ),
  one("text", Buffer.concat([u8(0x23), u32(0x7fffffff), latin1]), pointed(hex("7820e9")), "x é", "text", {
    table: "t",
    null: noLength
  }),
  one("ntext", Buffer.concat([u8(0x63), u32(0x7ffffffe), latin1]), pointed(ucs2("λ😀")), "λ😀", "ntext", {
    table: "t",
    null: noLength
  }),
  one("image", Buffer.concat([u8(0x22), u32(0x7fffffff)]), pointed(hex("010203")), "AQID", "image", {
    table: "t",
    null: noLength
  }),
  clr("hierarchyid root", "hierarchyid", "", "/"),
  clr("hierarchyid", "hierarchyid", "58", "/1/"),
  clr("hierarchyid two", "hierarchyid", "5ac0", "/1/1/"),
  clr("hierarchyid inserted", "hierarchyid", "62c0", "/1.1/"),
  clr("hierarchyid inserted below", "hierarchyid", "5b16", "/1/1.1/"),
  clr(
    "geometry",
    "geometry",
    "00000000010c000000000000f03f0000000000000040",
    "AAAAAAEMAAAAAAAA8D8AAAAAAAAAQA=="
  ),

  variant("variant tinyint", 0x30, none, u8(7), 7),
  variant("variant smallint", 0x34, none, i16(-7), -7),
  variant("variant int", 0x38, none, i32(1), 1),
  variant("variant bigint", 0x7f, none, i64(9007199254740993n), "9007199254740993"),
  variant("variant bit", 0x32, none, u8(1), true),
  variant("variant real", 0x3b, none, f32(0.1), 0.1),
  variant("variant float", 0x3e, none, f64(1e21), 1e21),
  variant("variant money", 0x3c, none, money(12345000n), "1234.5000"),
  variant("variant smallmoney", 0x7a, none, i32(-100), "-0.0100"),
  variant("variant decimal", 0x6a, Buffer.from([10, 2]), Tds.decimal(150n, 5), "1.50"),
  variant(
    "variant numeric",
    0x6c,
    Buffer.from([38, 10]),
    Tds.decimal(123456789012345678901234567890n, 17),
    "12345678901234567890.1234567890"
  ),
  variant("variant date", 0x28, none, Tds.days3("2024-02-29"), "2024-02-29"),
  variant("variant time", 0x29, u8(7), Tds.ticks("23:59:59.9999999", 7), "23:59:59.9999999"),
  variant(
    "variant datetime2",
    0x2a,
    u8(3),
    Buffer.concat([Tds.ticks("13:05:01.123", 3), Tds.days3("2024-02-29")]),
    "2024-02-29T13:05:01.123"
  ),
  variant(
    "variant datetimeoffset",
    0x2b,
    u8(7),
    Buffer.concat([Tds.ticks("07:35:01.1234567", 7), Tds.days3("2024-02-29"), i16(330)]),
    "2024-02-29T13:05:01.1234567+05:30"
  ),
  variant(
    "variant datetime",
    0x3d,
    none,
    Buffer.concat([i32(45349), u32(14130337)]),
    "2024-02-29T13:05:01.123"
  ),
  variant("variant smalldatetime", 0x3a, none, Buffer.concat([u16(0), u16(0)]), "1900-01-01T00:00:00"),
  variant(
    "variant uniqueidentifier",
    0x24,
    none,
    hex("99bceea00b9cf84ebb6d6bb9bd380a11"),
    "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
  ),
  variant("variant varchar", 0xa7, charProperties(latin1), hex("e980"), "é€"),
  variant("variant varchar utf-8", 0xa7, charProperties(utf8), Buffer.from("é😀"), "é😀"),
  variant("variant char", 0xaf, charProperties(latin1), Buffer.from("ab "), "ab "),
  variant("variant nvarchar", 0xe7, charProperties(latin1), ucs2("x😀"), "x😀"),
  variant("variant nchar", 0xef, charProperties(latin1), ucs2("ü "), "ü "),
  variant("variant varbinary", 0xa5, u16(8000), hex("00ff"), "AP8="),
  variant("variant binary", 0xad, u16(8000), hex("00ff"), "AP8=")
]
