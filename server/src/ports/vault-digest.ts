import { createHash } from 'node:crypto'
import type { VaultRow, VaultValue } from './vault-tables.ts'

/**
 * Sums up the rows of a table, whatever their order: equal tables have equal sums.
 *
 * The SHA-256 hashes of the rows are added as numbers. It detects mistakes, and need not withstand an attacker.
 */
export class VaultDigest {
  rows = 0
  #sum = 0n

  add(row: VaultRow): void {
    const hash = createHash('sha256')
    for (const it of row) addTo(hash, it)
    this.#sum = (this.#sum + BigInt(`0x${hash.digest('hex')}`)) & ALL_BITS
    this.rows += 1
  }

  /** 64 hexadecimal digits. */
  get sum(): string {
    return this.#sum.toString(16).padStart(64, '0')
  }
}

/** Prefixes each value with its type and length, so that different rows never have the same encoding. */
function addTo(hash: ReturnType<typeof createHash>, value: VaultValue): void {
  if (value instanceof Uint8Array) hash.update(`b${value.length}:`).update(value)
  else if (typeof value === 'string') hash.update(`t${Buffer.byteLength(value)}:${value}`)
  else hash.update(`${String(value)};`)
}

const ALL_BITS = 2n ** 256n - 1n
