import { VaultDigest } from '../ports/vault-digest.ts'
import {
  VAULT_TABLE_NAMES,
  type MovePoint,
  type VaultReader,
  type VaultTableName,
} from '../ports/vault-tables.ts'
import type { SqliteVaultSource } from '../adapters/sqlite/vault-source.ts'
import type { PostgresVaultTarget } from '../adapters/postgres/vault-target.ts'

/** Rows of a table that arrived since it was said last, and how many there are still to come. */
export interface MoveProgress {
  readonly table: VaultTableName
  readonly left: number
}

/** How often it is said, in rows. */
const TOLD_EVERY = 10_000

/** Brings over what comes after `at`, table by table and chunk by chunk. While one is written the next is read. */
export async function bringOver(
  source: SqliteVaultSource,
  target: PostgresVaultTarget,
  at: MovePoint,
  tell: (progress: MoveProgress) => void,
): Promise<void> {
  let from = at
  let arriving: Promise<void> = Promise.resolve()
  for (const table of VAULT_TABLE_NAMES.slice(VAULT_TABLE_NAMES.indexOf(at.table))) {
    let after = table === at.table ? at.after : null
    let left = source.left(table, after)
    for (;;) {
      const { rows, last } = await source.readChunk(table, after)
      await arriving
      if (rows.length === 0) break
      after = last
      const to = { table, after }
      arriving = target.put({ table, rows, from, to }).then(() => {
        const before = left
        left -= rows.length
        const passed = Math.floor(before / TOLD_EVERY) > Math.floor(left / TOLD_EVERY)
        if (left === 0 || passed) tell({ table, left })
      })
      // Heard of when the next chunk is there.
      arriving.catch(() => {})
      from = to
    }
  }
}

/** What two vaults have in a table. */
export interface ComparedTable {
  readonly table: VaultTableName
  readonly rows: number
  readonly sum: string
  readonly equal: boolean
}

/** Reads all of both vaults and says of each table, as soon as it is known, whether they have the same in it. */
export async function* compareVaults(
  one: VaultReader,
  other: VaultReader,
): AsyncIterable<ComparedTable> {
  for (const table of VAULT_TABLE_NAMES) {
    const sides = [one, other].map((it) => new DigestedSide(it, table))
    while (sides.some((it) => !it.over)) await Promise.all(sides.map((it) => it.step()))
    const [{ rows, sum }, { rows: otherRows, sum: otherSum }] = sides.map((it) => it.digest) as [
      VaultDigest,
      VaultDigest,
    ]
    yield { table, rows, sum, equal: rows === otherRows && sum === otherSum }
  }
}

/** One side of a comparison. Both go on together: while one waits for its database the other counts. */
class DigestedSide {
  readonly digest = new VaultDigest()
  readonly #reader: VaultReader
  readonly #table: VaultTableName
  #after: string | null = null
  over = false

  constructor(reader: VaultReader, table: VaultTableName) {
    this.#reader = reader
    this.#table = table
  }

  async step(): Promise<void> {
    if (this.over) return
    const { rows, last } = await this.#reader.readChunk(this.#table, this.#after)
    for (const it of rows) this.digest.add(it)
    this.#after = last
    this.over = last === null
  }
}
