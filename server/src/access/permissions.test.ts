import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PERMISSIONS } from '../base/permission-table.ts'
import { mayHold, permissionsOf } from './permissions.ts'

test('permissionsOf() lets a public application do no more than create and update tokens', () => {
  assert.deepEqual(permissionsOf('public'), ['token:create', 'token:update'])
})

test('permissionsOf() keeps token permissions and management apart', () => {
  const tokens = /^token:|:invoke$/
  assert.ok(permissionsOf('private').every((it) => tokens.test(it)))
  assert.ok(permissionsOf('management').every((it) => !tokens.test(it)))
})

test('mayHold() knows exactly the permissions of the registry', () => {
  for (const { type, applicationTypes } of PERMISSIONS) {
    for (const it of ['private', 'public', 'management'] as const) {
      assert.equal(mayHold(it, type), applicationTypes.includes(it), `${it} ${type}`)
    }
  }
  for (const { type } of PERMISSIONS) {
    assert.equal(mayHold('session', type), mayHold('private', type), `session ${type}`)
  }
  for (const it of ['', 'token:*', 'toString', 'constructor', 'TOKEN:READ']) {
    assert.equal(mayHold('private', it), false, it)
  }
})

test('PERMISSIONS names each permission once', () => {
  assert.equal(new Set(PERMISSIONS.map((it) => it.type)).size, PERMISSIONS.length)
})
