import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stillWorld } from '../../test/kit/still-world.ts'
import type { StoredNotice } from '../ports/stored.ts'
import { recoveryLogger } from './recovery-notices.ts'

const ID = '01945d00-0000-4000-8000-00000000000a'

test('a notice whose time is not valid hides no other', async () => {
  const world = stillWorld()
  const text = JSON.stringify({
    kind: 'management_key_recovered',
    tenant: ID,
    application: ID,
    key: ID,
  })
  const notices: StoredNotice[] = [
    { id: '01945d00-0000-4000-8000-00000000000b', text, at: -9e15 },
    { id: '01945d00-0000-4000-8000-00000000000c', text, at: 0 },
  ]
  const tenants = { ...world.store.tenants, notices: async () => notices, ids: async () => [] }
  await recoveryLogger({ log: world.log, store: { ...world.store, tenants } })()
  const times = world.logged.map((it) => (it as [string, { at: unknown }])[1].at)
  assert.deepEqual(times, [null, '1970-01-01T00:00:00.000Z'])
})
