import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  EGRESS_LOOKUPS_MAX,
  EGRESS_LOOKUPS_WAITING_MAX,
  EGRESS_NAME_MS,
  EGRESS_NAMELESS_MS,
  EGRESS_NAMES_MAX,
} from '../../base/limits.ts'
import { Names } from './names.ts'

test('answer() asks once for those who ask at the same time, and again when it is too old', async () => {
  const { names, asked, pass } = stage(async () => ['8.8.8.8'])
  await Promise.all([names.answer('a.example'), names.answer('a.example')])
  pass(EGRESS_NAME_MS - 1)
  await names.answer('a.example')
  assert.deepEqual(asked, ['a.example'])
  pass(1)
  await names.answer('a.example')
  assert.deepEqual(asked, ['a.example', 'a.example'])
})

test('answer() remembers that a name has no address, for a shorter while', async () => {
  const { names, asked, pass } = stage(async () => {
    throw new Error('no such name')
  })
  for (const _ of [1, 2]) await assert.rejects(names.answer('a.example'), { fault: 'unresolved' })
  assert.equal(asked.length, 1)
  pass(EGRESS_NAMELESS_MS)
  await assert.rejects(names.answer('a.example'), { fault: 'unresolved' })
  assert.equal(asked.length, 2)
})

test('answer() takes an answer as a whole or not at all', async () => {
  for (const addresses of [[], ['8.8.8.8', 'fe80::1%eth0'], ['8.8.8.8', '127.1']]) {
    const { names } = stage(async () => addresses)
    await assert.rejects(names.answer('a.example'), { fault: 'unresolved' })
  }
})

test('answer() has one key for the same addresses in any order, and keeps the order to try them', async () => {
  const orders = [
    ['8.8.8.8', '1.1.1.1'],
    ['1.1.1.1', '8.8.8.8'],
  ]
  const { names } = stage(async (name) => orders[Number(name)]!)
  const [one, other] = [await names.answer('0'), await names.answer('1')]
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
  const count = EGRESS_LOOKUPS_MAX + EGRESS_LOOKUPS_WAITING_MAX
  const answers = Array.from({ length: count }, (_, it) =>
    names.answer(String(it % 250) + 'x'.repeat(it)),
  )
  await assert.rejects(names.answer('one-too-many'), { fault: 'unresolved' })
  assert.equal(asked.length, EGRESS_LOOKUPS_MAX)
  const ends = Promise.allSettled(answers)
  while (free.length > 0) {
    free.shift()!()
    await new Promise((resolve) => void setImmediate(resolve))
    assert.ok(free.length <= EGRESS_LOOKUPS_MAX)
  }
  await ends
  assert.equal(asked.length, count)
})

test('as many names are remembered as there may be, those asked last', async () => {
  const { names, asked } = stage(async () => ['8.8.8.8'])
  for (let it = 0; it <= EGRESS_NAMES_MAX; it += 1) await names.answer(`n${it}`)
  const before = asked.length
  await names.answer('n1')
  assert.equal(asked.length, before)
  await names.answer('n0')
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
