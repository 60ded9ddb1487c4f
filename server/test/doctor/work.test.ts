/** Rotations, dead letters, jobs and audit logs that need the operator. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, describe, test, type TestContext } from 'node:test'
import { sweepAuditLogs } from '../../src/audit/retention.ts'
import { openWorld, type OpenWorld } from '../../src/cli/open-world.ts'
import { Rotations } from '../../src/cli/rotations.ts'
import { readConfig } from '../../src/config.ts'
import { startHostedVault } from '../kit/hosted-vault.ts'
import { runSymbolon, type RunningVault } from '../kit/running-vault.ts'
import { onRequest, testDestination } from '../kit/test-destination.ts'
import {
  assertFound,
  assertOk,
  backedUp,
  copyOf,
  examine,
  stoppedVault,
  until,
  type StoppedVault,
  type SettingVariables,
} from './doctor-stage.ts'

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS

/** Tests work on copies of it. */
const original = await stoppedVault({ after })

/** A machine with a clock that is ahead. */
const later = (ms: number) => ({ now: () => Date.now() + ms })

/** Works like a service, in this process and with a clock that is ahead. */
async function asService(
  variables: SettingVariables,
  aheadMs: number,
  work: (opened: OpenWorld) => Promise<unknown>,
): Promise<void> {
  const config = readConfig({ 'log-level': 'silent' }, variables)
  const opened = await openWorld(config, { onFault: () => {} })
  const { clock } = opened.world
  const ahead = {
    now: () => clock.now() + aheadMs,
    elapsed: () => clock.elapsed(),
    yield: () => clock.yield(),
    after: (ms: number) => clock.after(ms),
  }
  try {
    await work({ ...opened, world: { ...opened.world, clock: ahead } })
  } finally {
    await opened.close()
  }
}

describe('symbolon doctor on keys that are rotated', () => {
  test('key-rotations: finds one that is not finished, until a service has continued it', async (t) => {
    const { variables } = copyOf(t, original)
    await asService(variables, 0, async ({ world, keyMaker }) => {
      const [id] = await world.store.tenants.ids()
      const key = await keyMaker.next(id!, 2, world.clock.now())
      await world.store.commit(id!, [{ kind: 'insert', entity: 'tenant_key', row: key }])
    })
    assertFound(
      await examine({ variables }),
      'key-rotations',
      'warning',
      /Start the service \(symbolon serve\), which continues it/,
    )
    // A start resumes rotations, which yield to requests between their steps; this vault gets none.
    await asService(variables, 0, async ({ world, keyMaker }) => {
      await new Rotations(world, keyMaker, 0).resume()
    })
    assertOk(await examine({ variables }), 'key-rotations', 'tenant-keys')
  })

  test('key-age: finds keys that are older than a year, until they are rotated', async (t) => {
    const { variables } = copyOf(t, original)
    const ahead = 500 * DAY_MS
    const found = await examine({ variables, machine: later(ahead) })
    const remedy = assertFound(found, 'key-age', 'warning', /Run symbolon keys rotate --tenant /)
    const [, id] = /--tenant (\S+)\.$/.exec(remedy)!
    await asService(variables, ahead, async ({ world, keyMaker }) => {
      await new Rotations(world, keyMaker, 0).rotate(id!, () => {})
    })
    assertOk(await examine({ variables, machine: later(ahead) }), 'key-age', 'tenant-keys')
  })
})

describe('symbolon doctor on jobs', () => {
  /** A vault that invoked a reactor with a callback whose receiver answers `status`, until it is set otherwise. */
  async function callingBack(t: TestContext, status: number) {
    let answer = status
    const received = Promise.withResolvers<void>()
    const receiver = await testDestination(
      onRequest((socket) => {
        socket.end(`HTTP/1.1 ${answer} Answer\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`)
        received.resolve()
      }),
    )
    const vault = copyOf(t, original)
    const variables = {
      ...vault.variables,
      SYMBOLON_EGRESS_ALLOW: `127.0.0.1:${receiver.port}`,
      SYMBOLON_CALLBACK_RETRY_BASE_MS: '1000',
    }
    let service = await startHostedVault(vault.folder, variables)
    t.after(async () => {
      await service.stop()
      await receiver.close()
    })
    await invoke(service, vault, `http://127.0.0.1:${receiver.port}/`)
    await received.promise
    return {
      ...vault,
      variables,
      port: () => new URL(service.url).port,
      answers: (next: number): void => void (answer = next),
      stop: () => service.stop(),
      start: async () => void (service = await startHostedVault(vault.folder, variables)),
    }
  }

  /** Invokes a reactor whose result is sent to `url`. */
  async function invoke(service: RunningVault, { apiKey }: StoppedVault, url: string) {
    const call = async (key: string, path: string, body: object): Promise<Response> => {
      const reply = await fetch(service.url + path, {
        method: 'POST',
        headers: { 'BT-API-KEY': key, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      assert.ok(reply.ok, `${reply.status}`)
      return reply
    }
    const application = { name: 'calls', type: 'private', permissions: ['token:use'] }
    const { key } = (await (await call(apiKey, '/applications', application)).json()) as {
      key: string
    }
    const code = 'module.exports = async () => ({ raw: 1 })'
    const reactor = { name: 'sends', configuration: {}, code }
    const { id } = (await (await call(apiKey, '/reactors', reactor)).json()) as { id: string }
    await call(key, `/reactors/${id}/react`, { args: {}, callback_url: url })
  }

  test('dead-letters: finds one beside a running service, until it is replayed', async (t) => {
    const { home, apiKey, variables, port, answers } = await callingBack(t, 410)
    await until(async () => (await examine({ variables })).get('dead-letters')?.status !== 'ok')
    const remedy = assertFound(
      await examine({ variables }),
      'dead-letters',
      'warning',
      /symbolon callbacks list --api-key-file FILE/,
    )
    answers(200)
    const file = join(home, 'key')
    writeFileSync(file, apiKey)
    const [, command] = /run symbolon (callbacks replay .* FILE)\.$/.exec(remedy)!
    const words = command!.split(' ').map((it) => (it === 'FILE' ? file : it))
    const replayed = await runSymbolon([...words, '--port', port()], variables)
    assert.equal(replayed.status, 0, replayed.err)
    await until(async () => (await examine({ variables })).get('dead-letters')?.status === 'ok')
  })

  test('jobs: finds one that is long overdue, until a service runs', async (t) => {
    const { variables, answers, stop, start } = await callingBack(t, 503)
    await stop()
    const machine = later(60 * MINUTE_MS)
    assertFound(await examine({ variables, machine }), 'jobs', 'warning', /symbolon serve/)
    answers(200)
    await start()
    await until(async () => (await examine({ variables, machine })).get('jobs')?.status === 'ok')
  })
})

describe('symbolon doctor on audit logs', () => {
  test('audit-checkpoints: finds that a running service cannot make one, until a backup is restored', async (t) => {
    const vault = copyOf(t, original)
    // A start makes a checkpoint of the existing events.
    await (await startHostedVault(vault.folder, vault.variables)).stop()
    const restore = await backedUp(vault)
    const db = new DatabaseSync(join(vault.folder, 'symbolon.db'))
    db.exec("UPDATE record_heads SET seal = replace(seal, '1', '2')")
    db.close()
    const service = await startHostedVault(vault.folder, vault.variables)
    t.after(() => service.stop())
    const reply = await fetch(`${service.url}/applications`, {
      headers: { 'BT-API-KEY': vault.apiKey },
    })
    assert.equal(reply.status, 200)
    const machine = later(5 * MINUTE_MS)
    const found = await examine({ variables: vault.variables, machine })
    const remedy = assertFound(found, 'audit-checkpoints', 'failed', /symbolon restore/)
    assert.equal(found.get('audit-chain')?.status, 'failed')
    const [, command] = /Run symbolon (audit verify --tenant \S+), /.exec(remedy)!
    assert.equal((await runSymbolon(command!.split(' '), vault.variables)).status, 1)
    await service.stop()
    const variables = await restore(vault)
    const restored = await startHostedVault(variables['SYMBOLON_DATA_DIR']!, variables)
    t.after(() => restored.stop())
    await until(
      async () => (await examine({ variables, machine })).get('audit-checkpoints')?.status === 'ok',
    )
    assertOk(await examine({ variables, machine }), 'audit-chain')
  })

  test('audit-retention: finds events older than the retention period, until a sweep', async (t) => {
    const { variables, folder } = copyOf(t, original)
    await (await startHostedVault(folder, variables)).stop()
    const ahead = 500 * DAY_MS
    const found = await examine({ variables, machine: later(ahead) })
    assertFound(found, 'audit-retention', 'warning', /Start the service/)
    // A service sweeps at its start.
    await asService(variables, ahead, async ({ world }) => sweepAuditLogs(world, 400))
    assertOk(await examine({ variables, machine: later(ahead) }), 'audit-retention', 'audit-chain')
  })
})
