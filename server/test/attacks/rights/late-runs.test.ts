/**
 * What a caller began while it had rights, and comes to an end after they were taken away: a run that waits for a slot, its
 * result, and answers that were kept. Nothing of it is shown or sent once the rights are gone.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { JsonObject } from '../../../src/base/json.ts'
import { stillVault } from '../../kit/still-vault.ts'

describe('the key of a proxy', () => {
  const PROXY = { name: 'p', destination_url: 'https://api.example/v1' }
  const CASES: [string, string[], boolean][] = [
    ['is not shown to a caller that may only update it', ['proxy:update'], false],
    ['is shown to a caller that may also read it', ['proxy:update', 'proxy:read'], true],
  ]
  for (const [name, permissions, shown] of CASES) {
    test(`${name}, and not repeated once it may not read it`, async () => {
      const vault = await stillVault()
      const { managementKey } = vault
      const made = await vault.call('POST', '/proxies', { key: managementKey, body: PROXY })
      assert.match(made.json()['key'] as string, /^[0-9a-f]{32}$/)
      const application = { name: 'updater', type: 'management', permissions }
      const updater = await vault.call('POST', '/applications', {
        key: managementKey,
        body: application,
      })
      const { id, key } = updater.json() as { id: string; key: string }
      const path = `/proxies/${made.json()['id'] as string}`
      const headers = { 'bt-idempotency-key': 'again' }
      const update = { key, headers, body: PROXY }
      const updated = await vault.call('PUT', path, update)
      assert.equal(updated.status, 200, updated.text)
      assert.equal(updated.json()['key'], shown ? made.json()['key'] : undefined)
      assert.equal((await vault.call('PUT', path, update)).text, updated.text)

      const narrowed: JsonObject = { name: 'updater', permissions: ['proxy:update'] }
      await vault.call('PUT', `/applications/${id}`, { key: managementKey, body: narrowed })
      const again = await vault.call('PUT', path, update)
      assert.equal(again.status, shown ? 403 : 200, again.text)
    })
  }
})
