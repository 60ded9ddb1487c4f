import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OutboundReceiver } from '../../ports/egress.ts'
import { EgressCall } from './call.ts'
import { Timekeeper } from './timekeeper.ts'

const RECEIVER: OutboundReceiver = { headerSection: () => {}, data: () => true, end: () => {} }
const TIMEOUT_MS = 25_000

class BareCall extends EgressCall {
  protected goOn(): void {}
  protected drop(): void {}
  /** Reports that a part of the request was sent. */
  send(): void {
    this.onSent()
  }
}

test('a call is late when nothing came for as long as it may, and not while its request goes out', async () => {
  const timekeeper = new Timekeeper()
  const request = { method: 'POST', headers: [], body: null, timeoutMs: TIMEOUT_MS }
  const call = new BareCall(request, RECEIVER, timekeeper)
  const start = timekeeper.now()
  for (const part of [1, 2, 3]) {
    call.send()
    call.tick(start + part * TIMEOUT_MS)
    assert.equal(call.over, false)
  }
  call.tick(start + 4 * TIMEOUT_MS - 1)
  assert.equal(call.over, false)
  call.tick(start + 4 * TIMEOUT_MS)
  await assert.rejects(call.done, { fault: 'timeout' })
  timekeeper.stop()
})
