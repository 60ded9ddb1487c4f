import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { SEALED } from '../../src/adapters/sqlite/envelope-statements.ts'
import { openWorld } from '../../src/cli/open-world.ts'
import { readConfig } from '../../src/config.ts'
import { placeOf } from '../../src/keys/place-of.ts'
import type { EnvelopeCursor } from '../../src/world/store.ts'

/** Throws unless every tenant has one data key, every envelope is under it, and every envelope opens. */
export async function assertNothingLeft(folder: string): Promise<void> {
  const db = new DatabaseSync(join(folder, 'symbolon.db'), { readOnly: true })
  const versions = db.prepare("SELECT version FROM tenant_keys WHERE purpose = 'enc'").all()
  assert.equal(versions.length, 1, 'one data key')
  const head = Buffer.alloc(5)
  head.writeUInt8(1)
  head.writeUInt32BE(Number(versions[0]!['version']), 1)
  for (const { shelf, columns } of SEALED) {
    for (const column of Object.keys(columns)) {
      const left = db
        .prepare(`SELECT count(*) AS count FROM ${shelf} WHERE substr(${column}, 1, 5) <> ?`)
        .get(head)
      assert.equal(left!['count'], 0, `${shelf}.${column} is left under an older key`)
    }
  }
  db.close()
  await assertAllOpens(folder)
}

async function assertAllOpens(folder: string): Promise<void> {
  const config = readConfig({ 'data-dir': folder, 'log-level': 'silent' }, {})
  const { world, close } = await openWorld(config, { onFault: () => {} })
  for (const tenantId of await world.store.tenants.ids()) {
    const keys = await world.keyring.open(tenantId)
    const shelves = new Set<string>()
    let after: EnvelopeCursor | null = null
    do {
      const stretch = { head: Uint8Array.of(0), after, limit: 1000 }
      const { found, next } = await world.store.tenants.envelopes(tenantId, stretch)
      for (const it of found) {
        keys.open(placeOf(it), it.envelope)
        shelves.add(`${it.shelf} ${it.part}`)
      }
      after = next
    } while (after !== null)
    assert.equal(shelves.size, 9, `not all was looked at: ${[...shelves].join(', ')}`)
  }
  await close()
}
