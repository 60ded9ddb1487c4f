import assert from 'node:assert/strict'
import { test } from 'node:test'
import { egressContract } from '../../src/ports/egress.contract.ts'
import { collector } from './collector.ts'
import { senderOf } from '../../src/ports/egress.ts'
import { stillEgress } from './still-egress.ts'

egressContract('still', async ({ status, chunks, cut }) => {
  const egress = stillEgress()
  egress.reply = () => ({ status, chunks, ...(cut ? { fault: 'reset' } : {}) })
  return { egress, url: new URL('https://name.test/') }
})

test('it remembers what was asked and sent, and refuses what the test asks it to', async () => {
  const egress = stillEgress()
  const url = new URL('https://name.test/a')
  const route = await egress.vet(senderOf('tenant-a'), url, null)
  const request = { method: 'PUT', headers: ['A', 'b'], body: Buffer.from('c'), timeoutMs: 1 }
  await egress.send(route, request, collector()).done
  assert.deepEqual(egress.vetted, [
    { sender: senderOf('tenant-a'), url: url.href, allowedDestinations: null },
  ])
  const { timeoutMs: _, ...sent } = request
  assert.deepEqual(egress.sent, [{ sender: senderOf('tenant-a'), url: url.href, ...sent }])
  egress.refuse = () => 'address'
  await assert.rejects(egress.vet(senderOf('tenant-a'), url, null), { rule: 'address' })
  egress.refuse = () => 'unresolved'
  await assert.rejects(egress.vet(senderOf('tenant-a'), url, null), { fault: 'unresolved' })
})
