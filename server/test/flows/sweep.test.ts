/** The program as it runs: what ended while it was not there is out of the file after the next start. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { JsonObject } from '../../src/base/json.ts'
import { filesIn, runSymbolon, startVault, temporaryFolder } from '../kit/running-vault.ts'

test('a token that expires while the service is down is gone from the file after the start', async (t) => {
  const folder = temporaryFolder(t)
  const { out } = await runSymbolon(['init', '--json', '--data-dir', folder])
  const managementKey = (JSON.parse(out) as JsonObject)['api_key'] as string
  const vault = await startVault(folder)
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
  const ends = Date.now() + 2_000
  // What is not secret is in the file as it is, and so shows when the row is gone.
  const metadata = { mark: 'canary-5f3759df' }
  const expires = { expires_at: new Date(ends).toISOString() }
  await call('/tokens', made['key'] as string, { data: 'x', metadata, ...expires })
  await vault.stop()
  assert.equal(occursIn(folder, metadata.mark), true)

  await sleep(Math.max(0, ends - Date.now()) + 1)
  const again = await startVault(folder)
  for (let n = 0; occursIn(folder, metadata.mark); n++) {
    assert.ok(n < 500, 'it is still there')
    await sleep(10)
  }
  await again.stop()
  const db = new DatabaseSync(join(folder, 'symbolon.db'))
  assert.equal(db.prepare('SELECT count(*) AS count FROM tokens').get()!['count'], 0)
  db.close()
})

function occursIn(folder: string, text: string): boolean {
  return filesIn(folder).some((file) => readFileSync(file).includes(text))
}
