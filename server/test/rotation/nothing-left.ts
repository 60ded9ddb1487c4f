import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { PostgresDatabase } from '../../crash/postgres-database.ts'
import { SEALED as SEALED_ON_POSTGRES } from '../../src/adapters/storage/postgres/envelope-columns.ts'
import { SEALED } from '../../src/adapters/storage/sqlite/envelope-columns.ts'
import { openWorld } from '../../src/cli/open-world.ts'
import { sealContextOf } from '../../src/key-rotation/seal-context.ts'
import type { EnvelopeCursor } from '../../src/ports/stored.ts'
import { PATIENT } from '../kit/postgres/patient-store.ts'
import { configOf, type RotatingServerOptions } from './server.ts'

type Where = Pick<RotatingServerOptions, 'folder' | 'database'>

/** Throws unless every tenant has one data key, every envelope is under it, and every envelope opens. */
export async function assertNothingLeft(where: Where): Promise<void> {
  const { ask, close } = await opened(where)
  const versions = await ask("SELECT version FROM tenant_keys WHERE purpose = 'enc'")
  assert.equal(versions.length, 1, 'one data key')
  const dataKeyId = Buffer.alloc(5)
  dataKeyId.writeUInt8(1)
  dataKeyId.writeUInt32BE(Number(versions[0]!['version']), 1)
  const hex = dataKeyId.toString('hex')
  const literal = where.database === null ? `x'${hex}'` : `'\\x${hex}'::bytea`
  for (const { table, columns } of where.database === null ? SEALED : SEALED_ON_POSTGRES) {
    for (const column of Object.keys(columns)) {
      const begins = `substr(${column}, 1, 5)`
      const left = await ask(`SELECT count(*) AS count FROM ${table} WHERE ${begins} <> ${literal}`)
      assert.equal(Number(left[0]!['count']), 0, `${table}.${column} is left under an older key`)
    }
  }
  await close()
  await assertAllOpens(where)
}

interface OpenedDatabase {
  readonly ask: (sql: string) => Promise<Record<string, unknown>[]>
  readonly close: () => Promise<void>
}

async function opened({ folder, database }: Where): Promise<OpenedDatabase> {
  if (database !== null) {
    const db = await PostgresDatabase.open(database)
    return { ask: (sql) => db.ask(sql), close: () => db.close() }
  }
  const db = new DatabaseSync(join(folder, 'symbolon.db'), { readOnly: true })
  return { ask: async (sql) => db.prepare(sql).all(), close: async () => db.close() }
}

async function assertAllOpens(where: Where): Promise<void> {
  const { world, close } = await openWorld(configOf(where), {
    onFault: () => {},
    databaseDeadlineFactor: PATIENT,
  })
  for (const tenantId of await world.store.tenants.ids()) {
    const keys = await world.keyring.open(tenantId)
    const tables = new Set<string>()
    let after: EnvelopeCursor | null = null
    do {
      const stretch = { dataKeyId: Uint8Array.of(0), after, limit: 1000 }
      const { found, next } = await world.store.tenants.envelopes(tenantId, stretch)
      for (const it of found) {
        keys.open(sealContextOf(it), it.envelope)
        tables.add(`${it.table} ${it.part}`)
      }
      after = next
    } while (after !== null)
    assert.equal(tables.size, 9, `not all was looked at: ${[...tables].join(', ')}`)
  }
  await close()
}
