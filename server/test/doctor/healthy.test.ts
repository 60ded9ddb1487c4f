import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { LOCAL_MACHINE } from '../../src/adapters/system/host-machine.ts'
import { openContext } from '../../src/cli/doctor/context.ts'
import { readConfig } from '../../src/config.ts'
import { runSymbolon, startVault, temporaryFolder } from '../kit/running-vault.ts'
import {
  assertHealthy,
  copyOf,
  examine,
  killedVault,
  runDoctor,
  stoppedVault,
  variablesOf,
} from './doctor-stage.ts'

/** Tests copy it. */
const original = stoppedVault({ after })

// Registered first, for the service is to stop before its folder is removed.
after(async () => (await serving).service.stop())

/** A service that tests share, and its vault. */
const serving = (async () => {
  const vault = copyOf({ after }, await original)
  return { ...vault, service: await startVault(vault.folder, vault.variables) }
})()

/** The only setting of a vault that was set up with defaults; no test changes it. */
const byDefault = (async () => {
  const variables = { SYMBOLON_DATA_DIR: join(temporaryFolder({ after }), 'data') }
  assert.equal((await runSymbolon(['init'], variables)).status, 0)
  return variables
})()

/** Returns names, sizes, modes, change times and content hashes of everything in a folder. */
function stateOf(folder: string): unknown {
  return readdirSync(folder).map((name) => {
    const path = join(folder, name)
    const found = statSync(path)
    const content = found.isFile() ? hash('sha256', readFileSync(path)) : ''
    return [name, found.mode, found.size, found.mtimeMs, content]
  })
}

describe('symbolon doctor on a healthy vault', () => {
  test('finds nothing wrong after a clean stop, and changes no file', async (t) => {
    const vault = copyOf(t, await original)
    const before = stateOf(vault.folder)
    assertHealthy(await examine({ integrity: true, variables: vault.variables, sandbox: true }))
    assert.deepEqual(stateOf(vault.folder), before)
    assert.ok(!readdirSync(vault.folder).some((it) => /-(?:wal|shm)$/.test(it)))
  })

  test('finds nothing wrong beside a running service, which keeps serving', async () => {
    const { variables, service } = await serving
    const port = new URL(service.url).port
    const results = await examine({
      integrity: true,
      variables: { ...variables, SYMBOLON_PORT: port },
    })
    assertHealthy(results)
    assert.match(results.get('service')!.message, new RegExp(`^Process ${service.pid} .* ready`))
    assert.match(results.get('open-files')!.message, /^The service may open/)
    const ready = await fetch(`${service.url}/health/ready`)
    assert.equal(ready.status, 200)
  })

  test('reads the files of a killed service, and leaves them unchanged for the next start', async (t) => {
    const { folder, variables } = await killedVault(t)
    const before = stateOf(folder)
    const results = await examine({ integrity: true, variables })
    assert.deepEqual(stateOf(folder), before)
    for (const it of ['root-key', 'tenant-keys', 'integrity', 'audit-chain']) {
      assert.equal(results.get(it)?.status, 'ok', results.get(it)?.message)
    }
    assert.match(results.get('tenant-keys')!.message, /all 1 tenants/)
    assert.equal(results.get('leftovers')?.status, 'warning')
  })

  test('finds nothing wrong with an audit log that grows while it is read', async () => {
    const { variables, service, apiKey } = await serving
    const headers = { 'BT-API-KEY': apiKey }
    const examined = new AbortController()
    let requests = 0
    const asking = (async () => {
      while (!examined.signal.aborted) {
        await fetch(`${service.url}/applications`, { headers })
        requests++
      }
    })()
    for (let n = 0; n < 10; n++) assertHealthy(await examine({ integrity: true, variables }))
    examined.abort()
    await asking
    assert.ok(requests > 0)
  })

  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    test(`lets a service start on the vault it reads, after the last one ended by ${signal}`, async (t) => {
      const home = temporaryFolder(t)
      const variables = variablesOf(home)
      const folder = join(home, 'data')
      await (await startVault(folder, variables)).stop(signal)
      const { context, close } = await openContext({
        config: readConfig({}, variables),
        unknownVariables: [],
        ignoredVariables: [],
        machine: LOCAL_MACHINE,
      })
      t.after(close)
      const { tenants, jobs } = await context.vault()
      assert.equal(await tenants.count(), 1)
      const service = await startVault(folder, variables)
      assert.deepEqual(await jobs.counts(), { run: 0, deliver: 0, dead: 0 })
      assert.equal((await service.stop()).status, 0)
    })
  }

  test('creates nothing and fails no check before the first start', async (t) => {
    const home = temporaryFolder(t)
    const results = await examine({ integrity: true, variables: variablesOf(home) })
    assert.ok([...results.values()].every((it) => it.status !== 'failed'))
    assert.equal(results.get('tenant-keys')?.status, 'skipped')
    assert.deepEqual(readdirSync(home), [])
  })

  test('warns only about the place of the root key in a vault with default settings', async () => {
    const variables = { ...(await byDefault), SYMBOLON_PORT: '0' }
    const results = await examine({ integrity: true, variables })
    assert.equal(results.get('root-key-place')?.status, 'warning')
    results.delete('root-key-place')
    assertHealthy(results)
  })
})

describe('the output of symbolon doctor', () => {
  test('is text with problems first and a summary last, or one JSON object', async () => {
    const variables = await byDefault
    const { out, err } = await runSymbolon(['doctor'], variables)
    assert.equal(err, '')
    const lines = out.trimEnd().split('\n')
    assert.match(lines[0]!, /^(?:failed|warning) +\S+ +\S/)
    assert.match(lines[1]!, /^ +To fix: /)
    assert.match(lines.at(-1)!, /^\d+ failed, \d+ warnings?, \d+ ok$/)

    const { exitCode, status: worst, checks } = await runDoctor(variables)
    // The sandbox has a deadline, which a busy machine may miss.
    assert.equal(exitCode, worst === 'failed' ? 1 : 0)
    assert.notEqual(worst, 'ok')
    assert.deepEqual(Object.keys(checks.get('root-key-place')!), [
      'name',
      'group',
      'status',
      'message',
      'remedy',
    ])
    assert.equal(checks.get('root-key')!.remedy, null)
  })

  test('exits with 1 if a check fails, or with --strict if one warns', async () => {
    const variables = await byDefault
    assert.equal((await runDoctor(variables, '--strict')).exitCode, 1)
    const broken = { ...variables, SYMBOLON_METRICS_PORT: '4400', SYMBOLON_PORT: '4400' }
    assert.equal((await runDoctor(broken)).exitCode, 1)
  })
})
