import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { REACTOR_WARM_BYTES_MAX } from '../../base/limits.ts'
import type { GuestProcess } from './guest-process.ts'
import { WarmProcesses } from './warm-processes.ts'

describe('WarmProcesses', () => {
  test('keeps as many as fit, those used last, and takes each by its own reactor only', () => {
    const warm = new WarmProcesses()
    const third = REACTOR_WARM_BYTES_MAX / 3
    const guests = [third, third, third, third].map(guest)
    for (const [n, it] of guests.entries()) warm.put(owner(`reactor-${n}`), it)
    warm.look()
    assert.deepEqual(
      guests.map((it) => it.gone),
      [true, false, false, false],
    )
    assert.equal(warm.take(owner('reactor-0')), null)
    assert.equal(warm.take({ ...owner('reactor-1'), tenantId: 'tenant-b' }), null)
    assert.equal(warm.take(owner('reactor-1')), guests[1])
    warm.close()
    assert.ok(guests.slice(2).every((it) => it.gone))
  })

  test('counts what one has after its last run, and no more what was taken', () => {
    const warm = new WarmProcesses()
    const [one, other] = [guest(1), guest(1)]
    warm.put(owner('reactor-0'), one)
    warm.put(owner('reactor-1'), other)
    warm.look()
    assert.equal(warm.take(owner('reactor-0')), one)
    one.grown = REACTOR_WARM_BYTES_MAX
    warm.put(owner('reactor-0'), one)
    warm.look()
    assert.deepEqual([one.gone, other.gone], [false, true])
    assert.equal(warm.take(owner('reactor-0')), one)
    for (let n = 0; n < 4; n++) warm.put(owner(`reactor-${n}`), guest(REACTOR_WARM_BYTES_MAX / 4))
    warm.look()
    assert.notEqual(warm.take(owner('reactor-0')), null)
    warm.close()
  })

  test('ends those of another version of the same reactor', () => {
    const warm = new WarmProcesses()
    const old = guest(1)
    warm.put(owner('reactor-0'), old)
    warm.put({ ...owner('reactor-0'), version: '2' }, guest(1))
    assert.ok(old.gone)
    warm.close()
  })
})

function owner(reactorId: string) {
  return { tenantId: 'tenant-a', reactorId, version: '1' }
}

/** A stand-in for a guest: reports `bytes` of private memory and has no process. */
function guest(bytes: number): GuestProcess & { grown: number; gone: boolean } {
  const it = {
    gone: false,
    grown: bytes,
    privateBytes: () => it.grown,
    kill: () => (it.gone = true),
  }
  return it as unknown as GuestProcess & { grown: number; gone: boolean }
}
