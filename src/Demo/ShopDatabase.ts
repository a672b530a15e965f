/** The demo's shop: a small database as a web shop has one, the same on every machine. */

import * as SqlClient from "@effect/sql/SqlClient"
import { layer } from "@effect/sql-sqlite-node/SqliteClient"
import * as Effect from "effect/Effect"

/** A fixed sequence of numbers in [0, 1), so that the demo shows the same figures everywhere (mulberry32). */
const sequence = (seed: number) => {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

const firstNames = [
  "Ada",
  "Björn",
  "Chloé",
  "Dmitri",
  "Emre",
  "Fatima",
  "Goran",
  "Hana",
  "Íris",
  "Jürgen",
  "Kofi",
  "Łucja",
  "Mei 美",
  "Noor",
  "Øystein",
  "Paloma"
]
const lastNames = [
  "Almeida",
  "Baumann",
  "Černý",
  "Diallo",
  "Eriksson",
  "Fujita",
  "García",
  "Haddad",
  "Ivanova",
  "Jónsdóttir",
  "Kaya",
  "Lefèvre"
]
const cities = [
  "Lisboa",
  "Zürich",
  "København",
  "Kraków",
  "São Paulo",
  "Reykjavík",
  "東京",
  "Toronto",
  "Nairobi",
  "Wien"
]
const kinds = [
  "Tent",
  "Sleeping bag",
  "Stove",
  "Headlamp",
  "Backpack",
  "Jacket",
  "Boots",
  "Rope",
  "Map case",
  "Water filter"
]
const lines = ["Alpine", "Basecamp", "Fjord", "Nomad", "Summit", "Traverse"]

const pick = <A>(random: () => number, list: ReadonlyArray<A>): A => {
  const item = list[Math.floor(random() * list.length)]
  if (item === undefined) throw new Error("Nothing to pick from.")
  return item
}

const day = (offset: number) =>
  new Date(Date.UTC(2024, 0, 1) + offset * 86_400_000).toISOString().slice(0, 10)

const tables = [
  `create table customers (
    id integer primary key,
    name text not null,
    email text unique,
    city text,
    joined_on date not null
  )`,
  `create table products (
    id integer primary key,
    sku text not null unique,
    name text not null,
    -- exact money: whole cents
    price_cents integer not null check (price_cents > 0),
    discontinued_on date
  )`,
  `create table orders (
    id integer primary key,
    customer_id integer not null references customers (id),
    ordered_on date not null,
    status text not null check (status in ('paid', 'shipped', 'returned', 'cancelled')),
    note text
  )`,
  `create table order_lines (
    order_id integer not null references orders (id),
    line integer not null,
    product_id integer not null references products (id),
    quantity integer not null check (quantity > 0),
    unit_price_cents integer not null,
    primary key (order_id, line)
  ) without rowid`,
  "create index orders_by_customer on orders (customer_id)",
  "create index order_lines_by_product on order_lines (product_id)",
  `create view revenue_by_month as
    select substr(ordered_on, 1, 7) as month,
      sum(quantity * unit_price_cents) as revenue_cents,
      count(distinct order_id) as orders
    from order_lines join orders on orders.id = order_id
    where status <> 'cancelled'
    group by 1`
]

type Row = Record<string, string | number | null>

const makeRows = () => {
  const random = sequence(20240229)
  const customers: Array<Row> = []
  for (let id = 1; id <= 400; id++)
    customers.push({
      id,
      name: `${pick(random, firstNames)} ${pick(random, lastNames)}`,
      email: random() < 0.1 ? null : `customer${id}@example.com`,
      city: random() < 0.05 ? null : pick(random, cities),
      joined_on: day(Math.floor(random() * 300))
    })
  const prices: Array<number> = []
  const products = kinds.flatMap((kind, index) =>
    lines.map((line, variant): Row => {
      const id = index * lines.length + variant + 1
      const price = 900 + Math.floor(random() * 40_000)
      prices[id] = price
      return {
        id,
        sku: `SKU-${String(id).padStart(4, "0")}`,
        name: `${kind} “${line}”`,
        price_cents: price,
        discontinued_on: random() < 0.08 ? day(600) : null
      }
    })
  )
  const orders: Array<Row> = []
  const orderLines: Array<Row> = []
  for (let id = 1; id <= 3000; id++) {
    orders.push({
      id,
      customer_id: 1 + Math.floor(random() * customers.length),
      ordered_on: day(300 + Math.floor(random() * 430)),
      status: random() < 0.78 ? "shipped" : pick(random, ["paid", "returned", "cancelled"]),
      note:
        random() < 0.04
          ? pick(random, ["gift wrap 🎁", "leave at the door", "Bitte klingeln", "到着前に電話"])
          : null
    })
    const count = 1 + Math.floor(random() * 4)
    for (let line = 1; line <= count; line++) {
      const product = 1 + Math.floor(random() * products.length)
      orderLines.push({
        order_id: id,
        line,
        product_id: product,
        quantity: 1 + Math.floor(random() * 3),
        unit_price_cents: prices[product] ?? 0
      })
    }
  }
  return { customers, products, orders, order_lines: orderLines }
}

const batches = <A>(list: ReadonlyArray<A>, size: number): ReadonlyArray<ReadonlyArray<A>> =>
  Array.from({ length: Math.ceil(list.length / size) }, (_, n) => list.slice(n * size, (n + 1) * size))

/** Writes the database to `file`, which must not exist yet. */
export const write = (file: string): Effect.Effect<void> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    for (const statement of tables) yield* sql.unsafe(statement)
    for (const [table, rows] of Object.entries(makeRows()))
      for (const batch of batches(rows, 500)) yield* sql`insert into ${sql(table)} ${sql.insert(batch)}`
  }).pipe(
    // A sample that cannot be written has no answer that a caller could give.
    Effect.orDie,
    Effect.provide(layer({ filename: file, disableWAL: true })),
    Effect.orDie
  )
