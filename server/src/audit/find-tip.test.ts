import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryStore } from '../../test/kit/memory-store/memory-store.ts'
import { auditEvent, succeed, TENANT } from '../ports/store-kit.contract.ts'
import { rememberedTip } from '../ports/remembered-tip.ts'
import { findTip } from './find-tip.ts'

test('findTip() compares a tip with what is in its place, even where retention has been', async () => {
  const store = new MemoryStore()
  const events = [1, 2, 3, 4, 5].map((n) => auditEvent(n))
  await succeed(store, TENANT, [{ kind: 'append-audit-events', events }])
  const rows = await store.auditLog.rowsAfter(TENANT, 0, 9)
  const { number, listed, hash } = rows[2]!
  await succeed(store, TENANT, [{ kind: 'trim-audit-log', removed: { number, listed, hash } }])
  const tips = rows.map(rememberedTip)
  const found = (tip: (typeof tips)[number]) => findTip(store.auditLog, TENANT, tip)
  assert.deepEqual(await Promise.all(tips.map(found)), [
    'removed',
    'removed',
    'same',
    'same',
    'same',
  ])
  const others = tips.map(({ number }) => ({ number, hash: '00'.repeat(32) }))
  assert.deepEqual(await Promise.all(others.map(found)), [
    'removed',
    'removed',
    'different',
    'different',
    'different',
  ])
  assert.equal(await found({ ...tips[4]!, number: 6 }), 'missing')
  const without = { ...store.auditLog, rowsAfter: async () => [] }
  assert.equal(await findTip(without, TENANT, tips[4]!), 'missing')
  assert.equal(await findTip(new MemoryStore().auditLog, TENANT, tips[4]!), 'missing')
})
