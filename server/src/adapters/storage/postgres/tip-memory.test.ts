import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EMPTY_TIP, type RememberedTip } from '../../../ports/remembered-tip.ts'
import { TipMemory } from './tip-memory.ts'

const tip = (number: number): RememberedTip => ({ number, hash: `hash ${number}` })
const lost = (number: number) => ({ found: 'lost', tip: tip(number) }) as const

test('TipMemory forgets the tenant whose tip moved longest ago, and takes none that is only read once it is full', () => {
  const memory = new TipMemory(3)
  for (const it of ['a', 'b', 'c']) memory.settle(it, undefined, tip(1))
  memory.noteRead('d', tip(1))
  assert.deepEqual([...memory.takeSome(9).keys()], ['a', 'b', 'c'])
  memory.settle('a', memory.of(['a']).get('a'), tip(2))
  memory.settle('d', undefined, tip(1))
  assert.deepEqual([...memory.of(['a', 'b', 'c', 'd']).keys()], ['a', 'c', 'd'])
})

test('TipMemory returns every tip in turn, so many at a time', () => {
  const memory = new TipMemory()
  for (const it of ['a', 'b', 'c']) memory.noteRead(it, tip(1))
  const taken = [1, 2, 3, 4].map(() => [...memory.takeSome(2).keys()])
  assert.deepEqual(taken, [['a', 'b'], ['c'], ['a', 'b'], ['c']])
})

test('TipMemory keeps the tip that it has when another is read, which may not continue it', () => {
  const memory = new TipMemory()
  memory.noteRead('a', tip(5))
  memory.noteRead('a', tip(9))
  assert.deepEqual(memory.of(['a']).get('a'), tip(5))
})

test('TipMemory notes a loss once, although two transactions and a comparison find it', () => {
  const memory = new TipMemory()
  memory.settle('a', undefined, tip(9))
  const seen = memory.of(['a']).get('a')
  memory.settle('a', seen, tip(5), lost(4))
  memory.settle('a', seen, tip(6), lost(4))
  memory.settle('a', seen, tip(4), lost(4))
  assert.deepEqual(memory.takeLost(), [{ tenantId: 'a', tip: tip(9), last: 4 }])
  assert.deepEqual(memory.takeLost(), [])
  assert.deepEqual(memory.of(['a']).get('a'), tip(5))
})

test('TipMemory keeps the later of two tips whose transactions end in the other order', () => {
  const memory = new TipMemory()
  memory.settle('a', undefined, tip(1))
  const seen = memory.of(['a']).get('a')
  memory.settle('a', seen, tip(3), { found: 'kept', tip: tip(2) })
  memory.settle('a', seen, tip(2))
  assert.deepEqual(memory.of(['a']).get('a'), tip(3))
})

test('TipMemory keeps a tip that nothing was compared with, whatever continues an earlier one', () => {
  for (const found of ['kept', 'lost'] as const) {
    const memory = new TipMemory()
    memory.settle('a', undefined, tip(4))
    const seen = memory.of(['a']).get('a')
    memory.settle('a', seen, tip(5))
    // Event 5 is lost meanwhile, and another server has written 5 and 6.
    const other = { number: 6, hash: 'other' }
    memory.settle('a', seen, other, { found, tip: other })
    const kept = memory.of(['a']).get('a')
    assert.deepEqual(kept, tip(5))
    memory.settle('a', kept, other, { found: 'lost', tip: other })
    assert.deepEqual(memory.takeLost(), [{ tenantId: 'a', tip: tip(5), last: 6 }])
    assert.deepEqual(memory.of(['a']).get('a'), other)
  }
})

test('TipMemory notes once that the event of a tip is gone, until it was there again', () => {
  const memory = new TipMemory()
  const compare = (found: 'kept' | 'lost'): number => {
    memory.settle('a', memory.of(['a']).get('a'), tip(5), { found, tip: tip(5) })
    return memory.takeLost().length
  }
  memory.settle('a', undefined, tip(5))
  const noted = (['lost', 'lost', 'kept', 'lost', 'lost'] as const).map(compare)
  assert.deepEqual(noted, [1, 0, 0, 1, 0])
  memory.settle('a', memory.of(['a']).get('a'), tip(6))
  memory.settle('a', memory.of(['a']).get('a'), tip(6), lost(6))
  assert.equal(memory.takeLost().length, 1)
})

test('TipMemory, once full, forgets tenants that were found absent first, also for one that is only read', () => {
  const absent = { found: 'absent', tip: EMPTY_TIP } as const
  const memory = new TipMemory(3)
  for (const it of ['a', 'b', 'c']) memory.settle(it, undefined, tip(1))
  for (const it of ['b', 'c']) memory.settle(it, memory.of([it]).get(it), EMPTY_TIP, absent)
  memory.noteRead('d', tip(1))
  assert.deepEqual([...memory.takeSome(9).keys()], ['a', 'c', 'd'])
  // It was only set aside.
  memory.settle('c', memory.of(['c']).get('c'), tip(1), { found: 'kept', tip: tip(1) })
  memory.noteRead('e', tip(1))
  assert.deepEqual([...memory.takeSome(9).keys()], ['a', 'c', 'd'])
  memory.settle('e', undefined, tip(1))
  assert.deepEqual([...memory.takeSome(9).keys()], ['c', 'd', 'e'])
})

test('TipMemory keeps the tip of a tenant that is set aside, for when it is back', () => {
  const memory = new TipMemory()
  memory.settle('a', undefined, tip(9))
  memory.settle('a', memory.of(['a']).get('a'), EMPTY_TIP, { found: 'absent', tip: EMPTY_TIP })
  assert.deepEqual(memory.takeLost(), [])
  assert.deepEqual(memory.of(['a']).get('a'), tip(9))
})

test('TipMemory holds no more losses than tips', () => {
  const memory = new TipMemory(2)
  for (let n = 9; n > 4; n--) {
    memory.settle('a', undefined, tip(n))
    memory.settle('a', memory.of(['a']).get('a'), tip(0), lost(0))
  }
  assert.equal(memory.takeLost().length, 2)
})
