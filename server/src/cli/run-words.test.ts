import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rejectAsOutage } from '../ports/store-outage.ts'
import { operatorMessageOf } from './run-words.ts'

test('operatorMessageOf() says what a person can do when the database stops answering', () => {
  const cause = new Error('Connection terminated unexpectedly')
  assert.throws(
    () => rejectAsOutage(cause),
    (error) => {
      const message = operatorMessageOf(error, {})
      assert.match(message, /^The database stopped answering\. .* run the command again\./)
      assert.match(message, /\(Connection terminated unexpectedly\)$/)
      // Advice for clients of the API.
      assert.doesNotMatch(message, /idempotency|request/)
      return true
    },
  )
})

test('operatorMessageOf() shows the cause of an error, and no stack', () => {
  const error = new Error('Cannot do it', { cause: new Error('it is locked') })
  assert.equal(operatorMessageOf(error, {}), 'Cannot do it (it is locked)')
  assert.equal(operatorMessageOf('thrown', {}), 'thrown')
})
