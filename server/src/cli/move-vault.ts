import { VaultDigest } from '../ports/vault-digest.ts'
import {
  VAULT_TABLE_NAMES,
  type MovePoint,
  type VaultReader,
  type VaultTableName,
} from '../ports/vault-tables.ts'
import type { SqliteVaultSource } from '../adapters/storage/sqlite/vault-source.ts'
import type { PostgresVaultTarget } from '../adapters/storage/postgres/vault-target.ts'

/** Rows of a table copied since the last report, and rows still to copy. */
export interface MoveProgress {
  readonly table: VaultTableName
  readonly left: number
}

/** Rows between two progress reports. */
const TOLD_EVERY = 10_000

/** Copies everything after `at`, table by table and chunk by chunk. Reads the next chunk while one is written. */
export async function bringOver(
  source: SqliteVaultSource,
  target: PostgresVaultTarget,
  at: MovePoint,
  report: (progress: MoveProgress) => void,
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
        if (left === 0 || passed) report({ table, left })
      })
      // The error is handled when the next chunk is awaited.
      arriving.catch(() => {})
      from = to
    }
  }
}

/** The content of a table in both vaults. */
export interface ComparedTable {
  readonly table: VaultTableName
  readonly rows: number
  readonly sum: string
  readonly equal: boolean
}

/** Reads both vaults completely and yields for each table, as soon as it is known, whether its content is equal. */
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

/** One side of a comparison. Both run concurrently: one counts while the other waits for its database. */
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
