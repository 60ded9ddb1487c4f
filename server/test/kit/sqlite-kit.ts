/** Helpers of the SQLite store's tests: temporary folders, many tokens, probes. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { TestContext } from 'node:test'
import type { Change } from '../../src/ports/change.ts'
import type { StoredToken } from '../../src/ports/stored.ts'
import type { ProbePoint } from '../../src/adapters/storage/sqlite/run-batch.ts'
import { SqliteStore, type SqliteOptions } from '../../src/adapters/storage/sqlite/store.ts'

export const TENANT = '00000000-0000-4000-8000-00000000000a'

/** Returns a separate folder for the test, removed after it. */
export function freshFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'symbolon-'))
  t.after(() => rmSync(folder, { recursive: true }))
  return folder
}

/** Opens a store, which is closed after the test. */
export async function openStore(t: TestContext, options: SqliteOptions): Promise<SqliteStore> {
  const store = await SqliteStore.open(options)
  t.after(() => store.close())
  return store
}

/** Returns the URL of a probe that kills, stalls or fails at a point; see sqlite-fault.probe.ts. */
export function faultAt(point: ProbePoint, at: number, action: 'kill' | 'stall' | number): URL {
  return new URL(`./sqlite-fault.probe.ts?point=${point}&at=${at}&do=${action}`, import.meta.url)
}

export function insertNumbered(from: number, to: number): Change {
  const numbers = Array.from({ length: to - from }, (_, n) => from + n)
  return { kind: 'insert-tokens', tokens: numbers.map(tokenNumbered) }
}

export function idsNumbered(from: number, to: number): string[] {
  return Array.from({ length: to - from }, (_, n) => idNumbered(from + n))
}

/** Returns the number of rows in a table, whether or not a store has the folder open. */
export function countIn(folder: string, table: string): unknown {
  const db = new DatabaseSync(join(folder, 'symbolon.db'), { readOnly: true })
  const row = db.prepare(`SELECT count(*) AS count FROM ${table}`).get()
  db.close()
  return row?.count
}

function tokenNumbered(n: number): StoredToken {
  return {
    id: idNumbered(n),
    internalId: idNumbered(n),
    type: 'token',
    containers: ['/general/high/'],
    data: Uint8Array.of(1, 2, 3),
    cvc: null,
    metadata: null,
    details: null,
    fingerprint: null,
    deduplicate: false,
    indexes: [new Uint8Array(32).fill(n)],
    expiresAt: null,
    createdBy: TENANT,
    createdAt: n,
    modifiedBy: null,
    modifiedAt: null,
    revision: 0,
    uncommitted: false,
  }
}

function idNumbered(n: number): string {
  return `00000000-0000-4000-8000-${n.toString(16).padStart(12, '0')}`
}
