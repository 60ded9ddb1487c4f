import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RememberingLog } from '../../test/kit/remembering-log.ts'
import { stillEgress } from '../../test/kit/still-egress.ts'
import { onRequest, testDestination } from '../../test/kit/test-destination.ts'
import { Sensitive } from '../base/sensitive.ts'
import { openRunner } from './open-runner.ts'

test('openRunner() lets reactors reach the service, and the outside by the one door', async () => {
  const service = await testDestination(
    onRequest((socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}')),
  )
  const log = new RememberingLog()
  const runner = await openRunner({
    egress: stillEgress(),
    log,
    authorities: [],
    ownPort: () => service.port,
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
  assert.equal(
    outcome.kind === 'returned' && outcome.result.reveal(),
    '[{},"Refused by the rule on unlisted"]',
  )
})
