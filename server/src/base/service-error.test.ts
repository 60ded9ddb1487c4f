import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { REFUSALS, ServiceError, type RefusalCode } from './service-error.ts'

const CODES = Object.keys(REFUSALS) as RefusalCode[]

function framesOf(error: Error): number {
  return error.stack!.split('\n').filter((line) => line.startsWith('    at ')).length
}

describe('a ServiceError', () => {
  test('that callers can bring about as often as they like does not say where it was thrown', () => {
    const ofCallers = CODES.filter((code) => {
      const { status, ofCaller } = new ServiceError(code)
      return status < 500 || ofCaller
    })
    assert.ok(ofCallers.length > 50)
    for (const code of ofCallers) assert.equal(framesOf(new ServiceError(code)), 0, code)
  })

  test('that some failure caused does', () => {
    for (const code of ['store_unavailable', 'destination_reset'] as const) {
      assert.ok(framesOf(new ServiceError(code)) > 1, code)
    }
  })

  test('takes no stack from errors that are made after it', () => {
    const { stackTraceLimit } = Error
    for (const code of CODES) {
      void new ServiceError(code)
      assert.equal(Error.stackTraceLimit, stackTraceLimit)
      assert.ok(framesOf(new Error('fault')) > 1)
    }
  })
})
