import assert from 'node:assert/strict'
import { STATUS_CODES } from 'node:http'
import { describe, test } from 'node:test'
import { REFUSALS, ServiceError, type RefusalCode } from '../base/service-error.ts'
import { refusalOf, renderError, VALIDATION_TITLE } from './render-error.ts'

describe('renderError()', () => {
  for (const [code, { status, detail }] of Object.entries(REFUSALS)) {
    test(`gives ${code} its ${status}, with title, status, detail and code`, () => {
      const rendered = renderError(new ServiceError(code as RefusalCode, { member: ['message'] }))
      assert.equal(rendered.status, status)
      const title = status === 400 ? VALIDATION_TITLE : STATUS_CODES[status]
      const errors = { member: ['message'] }
      const { title: shown, ...rest } = rendered.body
      assert.deepEqual(rest, { errors, status, detail, code })
      // Node still has the older name of this status.
      assert.equal(shown, status === 413 ? 'Content Too Large' : title)
    })
  }

  test('gives a 400 without members an empty errors, and others none', () => {
    assert.deepEqual(renderError(new ServiceError('body_missing')).body['errors'], {})
    assert.ok(!('errors' in renderError(new ServiceError('token_not_found')).body))
  })

  for (const fault of [
    new Error('secret'),
    'secret',
    undefined,
    { status: 400, detail: 'secret' },
  ]) {
    test(`shows nothing of a fault: ${typeof fault}`, () => {
      const { status, body } = renderError(fault)
      assert.equal(status, 500)
      assert.deepEqual(Object.keys(body), ['title', 'status', 'detail'])
      assert.ok(!JSON.stringify(body).includes('secret'))
    })
  }
})

describe('refusalOf()', () => {
  for (const [status, code] of [
    [400, 'body_invalid'],
    [404, 'route_not_found'],
    [408, 'request_timeout'],
    [413, 'body_too_large'],
    [414, 'body_invalid'],
    [415, 'content_type_unsupported'],
    [500, undefined],
    [200, undefined],
  ] as const) {
    test(`makes ${code ?? 'nothing'} of an error with ${status}, and keeps it as the cause`, () => {
      const error = Object.assign(new Error('secret'), { statusCode: status })
      const refusal = refusalOf(error)
      assert.equal(refusal?.code, code)
      if (refusal !== null) {
        assert.equal(refusal.cause, error)
        assert.ok(!JSON.stringify(renderError(refusal)).includes('secret'))
      }
    })
  }

  test('makes nothing of what is a refusal already, or no error of the framework', () => {
    for (const error of [new ServiceError('token_not_found'), new Error('x'), 'x']) {
      assert.equal(refusalOf(error), null)
    }
  })
})
