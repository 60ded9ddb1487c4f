import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stillWorld } from '../../test/kit/still-world.ts'
import type { StoredNotice } from '../ports/stored.ts'
import { requireHeldByServers } from './server-notices.ts'

test('a server that was killed counts as running for 45 seconds after its last notice', async () => {
  const { clock, store } = stillWorld()
  const text = JSON.stringify({ kind: 'server', name: 'db1 (7)', rootKeys: ['old'] })
  const notice: StoredNotice = { id: '01945d00-0000-4000-8000-00000000000b', text, at: clock.now() }
  const tenants = { ...store.tenants, notices: async () => [notice] }
  const world = { clock, store: { ...store, tenants } }
  await requireHeldByServers(world, 'old')
  clock.pass(44_999)
  await assert.rejects(requireHeldByServers(world, 'new'), /without root key new: db1 \(7\)\./)
  clock.pass(1)
  await requireHeldByServers(world, 'new')
})
