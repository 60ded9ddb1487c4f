import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DatabaseError } from 'pg'
import { allOf } from './all-of.ts'

test('allOf() resolves with what each came to', async () => {
  assert.deepEqual(await allOf([Promise.resolve(1), Promise.resolve('two')]), [1, 'two'])
})

test('allOf() rejects with what went wrong, though its consequences are heard of first', async () => {
  const cause = Object.assign(new DatabaseError('', 0, 'error'), { code: '40001' })
  const consequence = Object.assign(new DatabaseError('', 0, 'error'), { code: '25P02' })
  const later = new Promise(setImmediate).then(() => Promise.reject(cause))
  await assert.rejects(allOf([Promise.reject(consequence), later]), cause)
  await assert.rejects(allOf([Promise.reject(consequence)]), consequence)
})

test('allOf() rejects with the first that did, when the last is over', async () => {
  const slow = Promise.withResolvers<void>()
  const over: string[] = []
  const all = allOf([
    Promise.reject(new Error('first')),
    slow.promise.then(() => over.push('slow')),
  ])
  const rejected = assert.rejects(all, /first/).then(() => over.push('rejected'))
  await new Promise(setImmediate)
  assert.deepEqual(over, [])
  slow.reject(new Error('second'))
  await rejected
  assert.deepEqual(over, ['rejected'])
})
