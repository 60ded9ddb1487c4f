import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../../test/kit/fast-check.ts'
import { Histogram } from '../../base/histogram.ts'
import { Sensitive } from '../../base/sensitive.ts'
import {
  EgressFailure,
  EgressRefusal,
  senderOf,
  type Egress,
  type OutboundCall,
} from '../../ports/egress.ts'
import { callbackStage } from '../../../test/kit/callback-stage.ts'
import { stillRunner } from '../../../test/kit/still-runner.ts'
import { stillVault } from '../../../test/kit/still-vault.ts'
import { renderFamilies } from './exposition.ts'
import { Meters } from './meters.ts'
import { storeFamilies } from './store-families.ts'

test('a histogram counts every value once, below the first bound that is not less', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(40)), (values) => {
      const histogram = new Histogram([5, 10, 20])
      for (const it of values) histogram.observe(it)
      const between = (from: number, to: number) =>
        values.filter((it) => it > from && it <= to).length
      const expected = [between(-1, 5), between(5, 10), between(10, 20), between(20, 99)]
      assert.deepEqual([...histogram.counts], expected)
      assert.equal(
        histogram.sum,
        values.reduce((sum, it) => sum + it, 0),
      )
    }),
  )
})

test('renderFamilies() adds buckets up, and escapes what labels may not hold', () => {
  const histogram = new Histogram([1, 2])
  for (const it of [1, 2, 2, 3]) histogram.observe(it)
  const labels = { a: 'quote " slash \\ line \n' }
  assert.equal(
    renderFamilies([
      {
        name: 'h',
        help: 'H.',
        type: 'histogram',
        samples: [{ labels: { x: 'y' }, value: histogram }],
      },
      { name: 'g', help: 'G.', type: 'gauge', samples: [{ labels, value: 1.5 }] },
    ]),
    [
      '# HELP h H.',
      '# TYPE h histogram',
      'h_bucket{x="y",le="1"} 1',
      'h_bucket{x="y",le="2"} 3',
      'h_bucket{x="y",le="+Inf"} 4',
      'h_sum{x="y"} 8',
      'h_count{x="y"} 4',
      '# HELP g G.',
      '# TYPE g gauge',
      'g{a="quote \\" slash \\\\ line \\n"} 1.5',
      '',
    ].join('\n'),
  )
})

test('a run that is not admitted after its wait is not counted as one', async () => {
  const meters = new Meters()
  const runner = stillRunner()
  const metered = meters.runner(runner)
  const run = {
    tenantId: 't',
    reactorId: 'r',
    version: '1',
    code: '',
    args: new Sensitive('{}'),
    configuration: new Sensitive('{}'),
    apiKey: null,
    destinations: null,
    timeoutMs: 1,
  }
  const lost = new Error('No longer')
  runner.slot = () => Promise.resolve()
  await assert.rejects(
    metered.run(run, () => Promise.reject(lost)),
    lost,
  )
  await metered.run(run, () => Promise.resolve())
  const rendered = renderFamilies(meters.families())
  assert.deepEqual(rendered.match(/^symbolon_reactor_runs_total.*$/gm), [
    'symbolon_reactor_runs_total{outcome="returned"} 1',
  ])
})

test('what leaves is counted by its outcome, and passes as it is', async () => {
  const meters = new Meters()
  const outcomes = [null, new EgressFailure('timeout'), new EgressFailure('timeout')]
  const seen: unknown[] = []
  const inner = {
    vet: () => Promise.reject(new EgressRefusal('scheme')),
    send: (_route, _request, receiver): OutboundCall => {
      const outcome = outcomes.shift()
      if (outcome !== null) return { done: Promise.reject(outcome!), resume() {}, abort() {} }
      receiver.headerSection(200, 'OK', [])
      seen.push(receiver.data(Buffer.from('x')))
      receiver.end()
      return { done: Promise.resolve(), resume() {}, abort() {} }
    },
  } as Partial<Egress> as Egress
  const egress = meters.egress(inner)
  const receiver = {
    headerSection: (...headerSection: unknown[]) => void seen.push(headerSection),
    data: () => false,
    end: () => void seen.push('end'),
  }
  for (let n = 0; n < 3; n++) {
    await egress.send(null!, null!, receiver).done.catch(() => {})
  }
  await assert.rejects(egress.vet(senderOf('a'), new URL('https://a.example'), null), EgressRefusal)
  assert.deepEqual(seen, [[200, 'OK', []], false, 'end'])
  const text = renderFamilies(meters.families())
  assert.match(text, /^symbolon_egress_total\{outcome="answered"\} 1$/m)
  assert.match(text, /^symbolon_egress_total\{outcome="timeout"\} 2$/m)
  assert.match(text, /^symbolon_egress_total\{outcome="refused"\} 1$/m)
  assert.match(text, /^symbolon_egress_seconds_count 1$/m)
})

test('requests with public keys that were over a limit are counted by the limit', async () => {
  const meters = new Meters()
  const { keyFor, call } = await stillVault({
    oneServer: 'a process by itself',
    requestLimits: { perKey: 2, perAddress: 1 },
    change: (world) => ({ ...world, log: meters.log(world.log) }),
  })
  const key = await keyFor({ type: 'public', permissions: ['token:create'] })
  for (const last of [1, 1, 1, 2, 3]) await call('GET', '/tokens', { key, peer: `192.0.2.${last}` })
  const rendered = renderFamilies(meters.families())
  assert.deepEqual(rendered.match(/^symbolon_requests_limited_total.*$/gm), [
    'symbolon_requests_limited_total{limit="address"} 2',
    'symbolon_requests_limited_total{limit="key"} 1',
  ])
})

test('audit logs that fell behind are counted, and there are none at first', () => {
  const meters = new Meters()
  const shown = () =>
    /^symbolon_audit_log_behind_total (\d+)$/m.exec(renderFamilies(meters.families()))?.[1]
  assert.equal(shown(), '0')
  const log = meters.log({ info: () => {}, warn: () => {}, error: () => {} })
  for (const it of ['audit_log_behind', 'record_unsealed', 'audit_log_behind']) {
    log.error(it, new Error('it happened'))
  }
  assert.equal(shown(), '2')
})

test('the store is asked how many callbacks wait, and how many dead letters there are', async () => {
  const { vault, invoke, receive, work, pass } = await callbackStage()
  const collect = storeFamilies(vault.world.clock, vault.world.store)
  const shown = async () =>
    (await collect())
      .find((it) => it.name === 'symbolon_jobs')!
      .samples.map(({ labels, value }) => [labels!['stage'], value])
  receive(() => ({ status: 500 }))
  await invoke()
  assert.deepEqual(await shown(), [
    ['run', 1],
    ['deliver', 0],
    ['dead', 0],
  ])
  await work()
  assert.deepEqual(await shown(), [
    ['run', 0],
    ['deliver', 1],
    ['dead', 0],
  ])
  await pass(180)
  assert.deepEqual(await shown(), [
    ['run', 0],
    ['deliver', 0],
    ['dead', 1],
  ])
})

test('the store is asked for the age of keys and the lag of the audit log', async () => {
  const { world, keyFor } = await stillVault()
  // The checkpoint of a new tenant covers its first events, but not these two.
  await keyFor({ permissions: ['token:read'] })
  const collect = storeFamilies(world.clock, world.store, 1000)
  const valueOf = async (name: string) =>
    (await collect()).find((it) => it.name === name)!.samples[0]!.value
  world.clock.pass(90_000)
  assert.equal(await valueOf('symbolon_data_key_age_seconds'), 90)
  assert.equal(await valueOf('symbolon_tenants'), 1)
  assert.equal(await valueOf('symbolon_record_unsealed_entries'), 2)
  world.clock.pass(999)
  assert.equal(await valueOf('symbolon_data_key_age_seconds'), 90)
  world.clock.pass(1)
  assert.equal(await valueOf('symbolon_data_key_age_seconds'), 91)
})
