/** The program as it runs: what ended while it was not there is out of the file after the next start. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import type { JsonObject } from '../../src/base/json.ts'
import { startHostedVault } from '../kit/hosted-vault.ts'
import { filesIn, runSymbolon, temporaryFolder } from '../kit/running-vault.ts'

test('a token that expires while the service is down is gone from the file after the start', async (t) => {
  const folder = temporaryFolder(t)
  const { out } = await runSymbolon(['init', '--json', '--data-dir', folder])
  const managementKey = (JSON.parse(out) as JsonObject)['api_key'] as string
  const vault = await startHostedVault(folder)
  const call = async (path: string, key: string, body: JsonObject): Promise<JsonObject> => {
    const reply = await fetch(vault.url + path, {
      method: 'POST',
      headers: { 'BT-API-KEY': key, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    assert.equal(reply.status, 201)
    return (await reply.json()) as JsonObject
  }
  const permissions = ['token:create']
  const made = await call('/applications', managementKey, {
    name: 'x',
    type: 'private',
    permissions,
  })
  // Metadata is stored in plaintext, so its absence shows that the row is gone.
  const metadata = { mark: 'canary-5f3759df' }
  const expires = { expires_at: '2099-01-01T00:00:00Z' }
  await call('/tokens', made['key'] as string, { data: 'x', metadata, ...expires })
  await vault.stop()
  assert.equal(occursIn(folder, metadata.mark), true)

  // Expired by hand: waiting for it would depend on how fast the machine is.
  const { changes } = inDatabase(folder, (db) =>
    db.prepare('UPDATE tokens SET expires_at = 1').run(),
  )
  assert.equal(changes, 1)
  assert.equal(occursIn(folder, metadata.mark), true)
  // The sweep that the start begins is over when the service has stopped; the next would come later than that.
  await (await startHostedVault(folder)).stop()
  assert.equal(occursIn(folder, metadata.mark), false)
  const counted = 'SELECT count(*) AS count FROM tokens'
  assert.equal(inDatabase(folder, (db) => db.prepare(counted).get())!['count'], 0)
})

function inDatabase<T>(folder: string, work: (db: DatabaseSync) => T): T {
  const db = new DatabaseSync(join(folder, 'symbolon.db'))
  try {
    return work(db)
  } finally {
    db.close()
  }
}

function occursIn(folder: string, text: string): boolean {
  return filesIn(folder).some((file) => readFileSync(file).includes(text))
}
