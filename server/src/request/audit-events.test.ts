import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { contextWith, STILL_NOW } from '../../test/kit/still-world.ts'
import type { RequestContext } from './context.ts'
import { tryAuthorize, authorize, type Resource } from '../access/authorize.ts'
import { auditEventsOf } from './audit-events.ts'

const PROXY = '01945d00-0000-4000-8000-0000000000f0'

describe('auditEventsOf()', () => {
  test('names the destination of each use, and keeps different ones apart', () => {
    const context = contextWith({ permissions: ['token:use'] })
    for (const destination of ['a.example', 'b.example', 'a.example']) {
      for (const n of [1, 2]) authorize(context, 'token:use', token(n), destination)
    }
    authorize(context, 'token:use', token(3))
    assert.deepEqual(eventsOf(context), [
      ['token', 'use', 'reveal', 'a.example', [internalId(1), internalId(2)]],
      ['token', 'use', 'reveal', 'b.example', [internalId(1), internalId(2)]],
      ['token', 'use', 'reveal', null, [internalId(3)]],
    ])
  })

  test('says of a token that a narrower permission was asked about that it was used', () => {
    for (const permission of ['proxy:invoke', 'reactor:invoke'] as const) {
      const context = contextWith({ permissions: [permission] })
      authorize(context, permission, token(1), 'a.example')
      assert.deepEqual(eventsOf(context), [
        ['token', 'use', 'reveal', 'a.example', [internalId(1)]],
      ])
      assert.equal(
        auditEventsOf(context, STILL_NOW, context.decisions, [])[0]?.permission,
        permission,
      )
    }
  })

  test('says of a request without tokens that a proxy was invoked, and which if it has an id', () => {
    const context = contextWith({ permissions: ['proxy:invoke'] })
    authorize(context, 'proxy:invoke', [], 'a.example')
    authorize(
      context,
      'proxy:invoke',
      { id: PROXY, internalId: PROXY, containers: [] },
      'a.example',
    )
    assert.deepEqual(eventsOf(context), [
      ['proxy', 'invoke', null, 'a.example', []],
      ['proxy', 'invoke', null, 'a.example', [PROXY]],
    ])
  })

  test('keeps what was only asked about apart from what was sent', () => {
    const context = contextWith({ permissions: ['token:use'] })
    for (const dryRun of [{}, { dryRun: true }] as const) {
      authorize(context, 'token:use', token(1), 'a.example')
      context.decisions.push({ ...context.decisions.pop()!, ...dryRun })
    }
    const events = auditEventsOf(context, STILL_NOW, context.decisions, [])
    assert.deepEqual(
      events.map((it) => it.dryRun),
      [false, true],
    )
  })

  test('names the destination of what was refused', () => {
    const context = contextWith({ permissions: ['token:read'] })
    assert.equal(tryAuthorize(context, 'token:use', token(1), 'a.example'), null)
    const [event] = auditEventsOf(context, STILL_NOW, context.decisions, [])
    assert.deepEqual([event?.allowed, event?.destination], [false, 'a.example'])
  })

  test('keeps a decision to send something apart from what the request changes', () => {
    const context = contextWith({ permissions: ['proxy:invoke'] })
    authorize(context, 'proxy:invoke', [], 'a.example')
    const change = { kind: 'delete', entity: 'application', id: internalId(9) } as const
    const events = auditEventsOf(context, STILL_NOW, context.decisions, [change])
    assert.deepEqual(
      events.map((it) => [it.entityType, it.destination]),
      [
        ['application', null],
        ['proxy', 'a.example'],
      ],
    )
  })
})

function eventsOf(context: RequestContext): unknown[] {
  return auditEventsOf(context, STILL_NOW, context.decisions, []).map((it) => {
    return [it.entityType, it.operation, it.shown, it.destination, it.entityIds]
  })
}

function token(n: number): Resource {
  return { id: `token-${n}`, internalId: internalId(n), containers: ['/'] }
}

function internalId(n: number): string {
  return `01945d00-0000-4000-8000-${String(n).padStart(12, '0')}`
}
