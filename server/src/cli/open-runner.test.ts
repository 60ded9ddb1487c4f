import fastify from 'fastify'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RememberingLog } from '../../test/kit/remembering-log.ts'
import { stillEgress } from '../../test/kit/still-egress.ts'
import { Sensitive } from '../base/sensitive.ts'
import { connectInside } from '../http/inside.ts'
import { openRunner } from './open-runner.ts'

test('openRunner() lets reactors reach the service, and the outside by the one door', async () => {
  const service = fastify()
  service.get('/tokens/a', () => ({}))
  await service.ready()
  const whose: string[] = []
  const log = new RememberingLog()
  const runner = await openRunner({
    level: 'jail',
    packages: [],
    logs: false,
    egress: stillEgress(),
    log,
    authorities: [],
    connect: (tenantId) => {
      whose.push(tenantId)
      return connectInside(service, tenantId)
    },
  })
  const outcome = await runner.run({
    tenantId: 'tenant-a',
    reactorId: 'reactor-a',
    version: '1',
    code: `module.exports = async ({ bt }) => [
      await bt.tokens.retrieve('a'),
      await fetch('https://destination.test').catch((error) => error.cause.message),
    ]`,
    args: new Sensitive('{}'),
    configuration: new Sensitive('{}'),
    apiKey: new Sensitive('key_test'),
    destinations: null,
    timeoutMs: 20_000,
  })
  await runner.close()
  await service.close()
  assert.deepEqual(whose, ['tenant-a'])
  assert.equal(
    outcome.kind === 'returned' && outcome.result.reveal(),
    '[{},"Refused by the rule on unlisted"]',
  )
})
