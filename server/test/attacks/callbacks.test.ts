import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UndiciEgress } from '../../src/adapters/egress/undici-egress.ts'
import { reactorStage } from '../kit/reactor-stage.ts'
import { FORBIDDEN_IPV4, FORBIDDEN_IPV6, formsOf } from './forbidden-forms.ts'

test('no way to write a forbidden address is accepted for a callback', async () => {
  // A host the URL parser does not take for an address is a name; its meaning is up to the resolver.
  const egress = new UndiciEgress({
    allow: [],
    extraAuthorities: [],
    resolve: async () => ['127.0.0.1'],
  })
  const { react, vault } = await reactorStage({ change: (world) => ({ ...world, egress }) })
  const forms = [...FORBIDDEN_IPV4, ...FORBIDDEN_IPV6].flatMap(formsOf)
  const accepted: string[] = []
  for (const url of forms) {
    const reply = await react({ callback_url: url })
    if (reply.status !== 400) accepted.push(`${url}: ${reply.status}`)
  }
  assert.ok(forms.length >= 400, `${forms.length} forms`)
  assert.deepEqual(accepted, [])
  assert.ok(!vault.world.committed.some((it) => it.kind === 'insert-job'))
  await egress.close()
})
