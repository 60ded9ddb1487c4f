import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  EGRESS_ADDRESSES_MAX,
  EGRESS_LOOKUPS_MAX,
  EGRESS_LOOKUPS_OF_ONE_MAX,
  EGRESS_LOOKUPS_WAITING_MAX,
  EGRESS_NAME_MS,
  EGRESS_NAMELESS_MS,
  EGRESS_NAMES_MAX,
} from '../../base/limits.ts'
import { Names } from './names.ts'

test('answer() asks once for those who ask at the same time, and again when it is too old', async () => {
  const { names, asked, pass } = stage(async () => ['8.8.8.8'])
  await Promise.all([names.answer('t', 'a.example'), names.answer('t', 'a.example')])
  pass(EGRESS_NAME_MS - 1)
  await names.answer('t', 'a.example')
  assert.deepEqual(asked, ['a.example'])
  pass(1)
  await names.answer('t', 'a.example')
  assert.deepEqual(asked, ['a.example', 'a.example'])
})

test('answer() remembers that a name has no address, for a shorter while', async () => {
  const { names, asked, pass } = stage(async () => {
    throw new Error('no such name')
  })
  for (const _ of [1, 2])
    await assert.rejects(names.answer('t', 'a.example'), { fault: 'unresolved' })
  assert.equal(asked.length, 1)
  pass(EGRESS_NAMELESS_MS)
  await assert.rejects(names.answer('t', 'a.example'), { fault: 'unresolved' })
  assert.equal(asked.length, 2)
})

test('answer() takes an answer as a whole or not at all', async () => {
  for (const addresses of [[], ['8.8.8.8', 'fe80::1%eth0'], ['8.8.8.8', '127.1']]) {
    const { names } = stage(async () => addresses)
    await assert.rejects(names.answer('t', 'a.example'), { fault: 'unresolved' })
  }
})

test('answer() has one key for the same addresses in any order, and keeps the order to try them', async () => {
  const orders = [
    ['8.8.8.8', '1.1.1.1'],
    ['1.1.1.1', '8.8.8.8'],
  ]
  const { names } = stage(async (name) => orders[Number(name)]!)
  const [one, other] = [await names.answer('t', '0'), await names.answer('t', '1')]
  assert.equal(one.key, other.key)
  assert.deepEqual(
    one.addresses.map((it) => it.text),
    orders[0],
  )
})

test('few names are looked up at a time, the next when one is done, and not too many wait', async () => {
  const free: (() => void)[] = []
  const { names, asked } = stage((name) => {
    return new Promise((resolve) => free.push(() => resolve([`8.8.8.${name}`])))
  })
  const count = EGRESS_LOOKUPS_OF_ONE_MAX + EGRESS_LOOKUPS_WAITING_MAX
  const answers = Array.from({ length: count }, (_, it) =>
    names.answer('t', String(it % 250) + 'x'.repeat(it)),
  )
  await assert.rejects(names.answer('t', 'one-too-many'), { fault: 'unresolved' })
  assert.equal(asked.length, EGRESS_LOOKUPS_OF_ONE_MAX)
  const ends = Promise.allSettled(answers)
  while (free.length > 0) {
    free.shift()!()
    await new Promise((resolve) => void setImmediate(resolve))
    assert.ok(free.length <= EGRESS_LOOKUPS_OF_ONE_MAX)
  }
  await ends
  assert.equal(asked.length, count)
})

test('no owner waits for the slow names of another, not even for a name that both ask for', async () => {
  const free: (() => void)[] = []
  const { names, asked } = stage((name) => {
    if (name === 'good.example') return Promise.resolve(['8.8.8.8'])
    return new Promise((resolve) => free.push(() => resolve(['8.8.8.8'])))
  })
  const slow = Array.from({ length: EGRESS_LOOKUPS_WAITING_MAX * 2 }, (_, it) =>
    names.answer('slow', `s${it}`),
  )
  const inVain = names.answer('slow', 'good.example')
  const ends = Promise.allSettled([...slow, inVain])
  assert.equal((await names.answer('other', 'good.example')).key, '8.8.8.8')
  await assert.rejects(inVain, { fault: 'unresolved' })
  // Both owners have lookups queued: they are served round-robin.
  const two = ['x', 'y'].map((it) => [names.answer(it, `${it}0`), names.answer(it, `${it}1`)])
  assert.equal(asked.length, EGRESS_LOOKUPS_MAX + 1)
  for (let it = 0; it < 4; it++) {
    free.shift()!()
    await new Promise((resolve) => void setImmediate(resolve))
  }
  assert.deepEqual(asked.slice(3), ['x0', 's2', 'x1', 'y0', 's3'])
  while (free.length > 0) {
    free.shift()!()
    await new Promise((resolve) => void setImmediate(resolve))
  }
  await Promise.all([ends, ...two.flat()])
})

test('a name with too many addresses has none', async () => {
  const addresses = Array.from({ length: EGRESS_ADDRESSES_MAX + 1 }, (_, it) => `8.8.8.${it}`)
  const { names } = stage(async (name) => (name === 'a' ? addresses : addresses.slice(1)))
  await assert.rejects(names.answer('t', 'a'), { fault: 'unresolved' })
  assert.equal((await names.answer('t', 'b')).addresses.length, EGRESS_ADDRESSES_MAX)
})

test('as many names are remembered as there may be, those asked last', async () => {
  const { names, asked } = stage(async () => ['8.8.8.8'])
  for (let it = 0; it <= EGRESS_NAMES_MAX; it += 1) await names.answer('t', `n${it}`)
  const before = asked.length
  await names.answer('t', 'n1')
  assert.equal(asked.length, before)
  await names.answer('t', 'n0')
  assert.equal(asked.length, before + 1)
})

function stage(resolve: (name: string) => Promise<readonly string[]>) {
  let now = 0
  const asked: string[] = []
  const names = new Names(
    (name) => {
      asked.push(name)
      return resolve(name)
    },
    () => now,
  )
  return { names, asked, pass: (ms: number) => void (now += ms) }
}
