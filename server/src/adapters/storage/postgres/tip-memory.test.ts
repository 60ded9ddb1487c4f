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
  assert.deepEqual(memory.of(['a']).get('a'), tip(6))
})

test('TipMemory keeps the later of two tips whose transactions end in the other order', () => {
  const memory = new TipMemory()
  memory.settle('a', undefined, tip(1))
  const seen = memory.of(['a']).get('a')
  memory.settle('a', seen, tip(3), { found: 'kept', tip: tip(2) })
  memory.settle('a', seen, tip(2))
  assert.deepEqual(memory.of(['a']).get('a'), tip(3))
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
