import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { FinishingProcesses } from './finishing-processes.ts'
import type { GuestProcess } from './guest-process.ts'

const OWNER = { tenantId: 'tenant-a', reactorId: 'reactor-a', version: '1' }
const GUEST = {} as GuestProcess

describe('FinishingProcesses', () => {
  test('hands a process that turns out clean to the run that waits for it, and to no other', async () => {
    const finishing = new FinishingProcesses()
    const handOver = finishing.put(OWNER, GUEST)
    const next = finishing.take(OWNER)
    assert.equal(finishing.take(OWNER), null)
    assert.equal(handOver(true), true)
    assert.equal(await next, GUEST)
    assert.equal(finishing.take(OWNER), null)
  })

  test('hands over no process that is not clean', async () => {
    const finishing = new FinishingProcesses()
    const handOver = finishing.put(OWNER, GUEST)
    const next = finishing.take(OWNER)
    assert.equal(handOver(false), false)
    assert.equal(await next, null)
  })

  test('leaves a process that no run waits for to the caller', () => {
    const finishing = new FinishingProcesses()
    assert.equal(finishing.put(OWNER, GUEST)(true), false)
    assert.equal(finishing.take(OWNER), null)
  })

  test('hands a process only to a run of its own reactor', () => {
    const finishing = new FinishingProcesses()
    finishing.put(OWNER, GUEST)
    for (const other of [{ tenantId: 'tenant-b' }, { reactorId: 'reactor-b' }, { version: '2' }]) {
      assert.equal(finishing.take({ ...OWNER, ...other }), null)
    }
  })
})
