import fastify from 'fastify'
import assert from 'node:assert/strict'
import path from 'node:path'
import { test } from 'node:test'
import { RememberingLog } from '../../test/kit/remembering-log.ts'
import { temporaryFolder } from '../../test/kit/running-vault.ts'
import { stillEgress } from '../../test/kit/still-egress.ts'
import { BUNDLED_PACKAGES } from '../adapters/jail/allowed-modules.ts'
import type { InProcessCaller } from '../base/access.ts'
import { Sensitive } from '../base/sensitive.ts'
import { connectInProcess } from '../http/connection/in-process-connections.ts'
import { openRunner } from './open-runner.ts'

/** Longer than any run here takes on the slowest machine. */
const TIMEOUT_MS = 600_000

const QUIET = {
  level: 'jail',
  packages: [],
  logs: false,
  egress: stillEgress(),
  log: new RememberingLog(),
  authorities: [],
  connect: () => null,
  wallsTestMsMax: TIMEOUT_MS,
} as const

const JOB = {
  tenantId: 'tenant-a',
  reactorId: 'reactor-a',
  version: '1',
  args: new Sensitive('{}'),
  configuration: new Sensitive('{}'),
  apiKey: null,
  destinations: ['destination.test'],
  timeoutMs: TIMEOUT_MS,
}

test('openRunner() lets reactors reach the service, and the outside by the egress gateway alone', async () => {
  const service = fastify()
  service.get('/tokens/a', () => ({}))
  await service.ready()
  const whose: InProcessCaller[] = []
  const runner = await openRunner({
    ...QUIET,
    connect: (inProcessCaller) => {
      whose.push(inProcessCaller)
      return connectInProcess(service, inProcessCaller)
    },
  })
  const outcome = await runner.run({
    ...JOB,
    code: `module.exports = async ({ bt }) => [
      await bt.tokens.retrieve('a'),
      await fetch('https://destination.test').catch((error) => error.cause.message),
    ]`,
    apiKey: new Sensitive('key_test'),
  })
  await runner.close()
  await service.close()
  assert.deepEqual(whose, [{ tenantId: 'tenant-a', destinations: ['destination.test'] }])
  assert.equal(
    outcome.kind === 'returned' && String(outcome.result.reveal()),
    '[{},"Refused by the rule on unlisted"]',
  )
})

test('openRunner() has what reactors say in the log, if it is asked to, line by line and bounded', async () => {
  const [heard, deaf] = [new RememberingLog(), new RememberingLog()]
  const code = `module.exports = ({ args }) => console.log('a card\\n' + args.number + ' ' + 'x'.repeat(5000))`
  for (const [log, logs] of [
    [heard, true],
    [deaf, false],
  ] as const) {
    const runner = await openRunner({ ...QUIET, log, logs })
    const outcome = await runner.run({
      ...JOB,
      code,
      args: new Sensitive('{"number":"4242424242424242"}'),
    })
    assert.equal(outcome.kind, 'returned')
    await runner.close()
  }
  const lines = heard.lines.filter((it) => it.event === 'reactor_output').map((it) => it.fields)
  const whose = { tenant: 'tenant-a', reactor: 'reactor-a' }
  assert.deepEqual(lines, [
    { ...whose, said: 'a card' },
    { ...whose, said: `[redacted] ${'x'.repeat(4096 - 11)}` },
    { ...whose, said: 'x'.repeat(5000 - 4096 + 11) },
  ])
  assert.deepEqual(deaf.lines, [])
})

test('openRunner() warns of a level without walls, and of packages that are not there', async () => {
  const log = new RememberingLog()
  const runner = await openRunner({
    ...QUIET,
    log,
    level: 'portable',
    packages: ['lodash', 'no-such-package'],
  })
  await runner.close()
  assert.deepEqual(
    log.lines.map((it) => it.event),
    ['reactors_without_walls', 'packages_missing'],
  )
  assert.deepEqual(log.lines[1]?.fields['packages'], ['no-such-package'])
})

test('openRunner() reports the bundled packages that are not installed', async (t) => {
  const log = new RememberingLog()
  const anchor = path.join(temporaryFolder(t), 'index.js')
  const runner = await openRunner({ ...QUIET, log, anchor })
  await runner.close()
  const { event, fields } = log.lines.at(-1)!
  assert.equal(event, 'reactor_modules_missing')
  assert.deepEqual(fields['packages'], BUNDLED_PACKAGES)
  assert.match(fields['hint'] as string, /install @symbolon\/reactor-modules/)
})
