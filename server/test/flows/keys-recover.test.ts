/** `symbolon keys recover` as an operator runs it: the only management key was deleted, and the command creates another. */
import assert from 'node:assert/strict'
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { FileKeyProvider } from '../../src/adapters/local-keyring/file-key-provider.ts'
import { RootKeys } from '../../src/adapters/local-keyring/root-keys.ts'
import { giveOrder } from '../../src/adapters/system/control-socket.ts'
import { SystemRandom } from '../../src/adapters/system/system-random.ts'
import type { JsonObject } from '../../src/base/json.ts'
import { CHALLENGE_ORDER, proveRecovery } from '../../src/cli/recovery-order.ts'
import { query } from '../kit/postgres/test-database.ts'
import { preparedVault, STORES, type PreparedVault } from '../kit/prepared-vault.ts'
import { startHostedVault } from '../kit/hosted-vault.ts'
import { filesIn, runSymbolon, temporaryFolder } from '../kit/running-vault.ts'

const LOGGED = /"level":"warn",[^\n]*"event":"management_key_recovered"/g

for (const store of STORES) {
  describe(`a tenant on ${store} whose only management key was deleted`, () => {
    test('gets another while the service runs: it works at once, and is in both logs', async (t) => {
      const { folder, where, key } = await preparedVault(t, store)
      const vault = await startHostedVault(folder, where)
      t.after(() => vault.stop())
      await deleteKey(vault.url, key)
      const { status, out, err } = await recover(where, '--tenant', 'default', '--json')
      assert.deepEqual([status, err], [0, ''])
      const made = JSON.parse(out) as Record<string, string>
      assert.deepEqual(Object.keys(made), ['tenant_id', 'application_id', 'api_key'])
      await assertManages(vault.url, made)
      const { out: printed } = await vault.stop()
      assert.equal(printed.match(LOGGED)?.length, 1, printed)
      assert.ok(printed.includes(`"application":"${made['application_id']}"`))
      assertNowhere(folder, printed, made['api_key']!)
      const verified = await runSymbolon(['audit', 'verify'], where)
      assert.equal(verified.status, 0, verified.out)
    })

    test('gets another while the service is stopped, and the next start logs it, once', async (t) => {
      const { folder, where } = await preparedVault(t, store)
      await execute(where, 'DELETE FROM application_keys')
      const { status, out, err } = await recover(where, '--tenant', 'default')
      assert.deepEqual([status, err], [0, ''])
      const made = Object.fromEntries(
        out
          .trim()
          .split('\n')
          .map((it) => it.split(/ +/)),
      )
      const verified = await runSymbolon(['audit', 'verify', '--json'], where)
      const { last, sealed } = JSON.parse(verified.out) as Record<string, unknown>
      assert.equal(sealed, last, 'its event has a checkpoint, though no service runs')
      const vault = await startHostedVault(folder, where)
      t.after(() => vault.stop())
      await assertManages(vault.url, made)
      const { out: printed } = await vault.stop()
      assert.equal(printed.match(LOGGED)?.length, 1, printed)
      assertNowhere(folder, printed, made['api_key'])
      assert.equal(await countOf(where, 'notices'), 0, 'another start would log it again')
    })

    test('gets none without the root key in use, whether the service runs or not', async (t) => {
      const { folder, where } = await preparedVault(t, store)
      const other = join(temporaryFolder(t), 'root.key')
      writeFileSync(other, Buffer.alloc(32, 7), { mode: 0o600 })
      const wrong = { ...where, SYMBOLON_ROOT_KEY_FILE: other }
      const missing = { ...where, SYMBOLON_ROOT_KEY_FILE: `${other}.none` }
      const vault = await startHostedVault(folder, where)
      t.after(() => vault.stop())
      const running = await recover(wrong, '--tenant', 'default')
      assert.match(
        running.err,
        /was run without root key [0-9a-f]{16}, which is in use; set SYMBOLON/,
      )
      const absent = await recover(missing, '--tenant', 'default')
      assert.match(absent.err, /Cannot open the root key file .*: it does not exist/)
      const { out: printed } = await vault.stop()
      assert.doesNotMatch(printed, LOGGED)
      const stopped = await recover(wrong, '--tenant', 'default')
      assert.match(stopped.err, /The data was set up with root key [0-9a-f]{16}, but root key/)
      for (const it of [running, absent, stopped]) assert.deepEqual([it.status, it.out], [1, ''])
      for (const it of ['applications', 'application_keys']) {
        assert.equal(await countOf(where, it), 1, it)
      }
      assert.equal(await countOf(where, 'notices'), 0, 'the next start would log a recovery')
    })
  })
}

// One of these waits for the server to look for notices, which is every ten seconds.
describe('symbolon keys recover', { concurrency: 2 }, () => {
  test('a server logs a recovery made on another machine, and the key works on the server at once', async (t) => {
    const { folder, where } = await preparedVault(t, 'PostgreSQL')
    const elsewhere = join(temporaryFolder(t), 'data')
    mkdirSync(elsewhere)
    copyFileSync(join(folder, 'root.key'), join(elsewhere, 'root.key'))
    const vault = await startHostedVault(folder, where)
    t.after(() => vault.stop())
    const command = { ...where, SYMBOLON_DATA_DIR: elsewhere }
    const { status, out, err } = await recover(command, '--tenant', 'default', '--json')
    assert.deepEqual([status, err], [0, ''])
    await assertManages(vault.url, JSON.parse(out))
    while (vault.printed().match(LOGGED) === null) await sleep(100)
  })

  test('an impossible recovery is refused in one sentence that says what to do, with a service and without', async (t) => {
    const { folder, where, tenantId, applicationId } = await preparedVault(t)
    const one = `pass the id or the name of one of ${tenantId} (default).`
    const application = `of tenant "default": there is no such application; omit --application to create a new one.`
    const cases: [args: string[], said: string][] = [
      [[], `--tenant is missing: ${one}`],
      [['--tenant', 'x'], `There is no tenant "x": ${one}`],
      [
        ['--tenant', 'default', '--application', tenantId],
        `Cannot add a key to application ${tenantId} ${application}`,
      ],
    ]
    const check = async (): Promise<void> => {
      for (const [args, said] of cases) {
        const { status, out, err } = await recover(where, ...args)
        assert.deepEqual([status, out, err], [1, '', `symbolon keys recover: ${said}\n`])
      }
    }
    await check()
    const vault = await startHostedVault(folder, where)
    t.after(() => vault.stop())
    await check()
    const added = await recover(
      where,
      '--tenant',
      tenantId,
      '--application',
      applicationId,
      '--json',
    )
    assert.equal((JSON.parse(added.out) as JsonObject)['application_id'], applicationId)
  })

  test('creates no vault where there is none', async (t) => {
    const folder = join(temporaryFolder(t), 'typo')
    const { status, err } = await recover({ SYMBOLON_DATA_DIR: folder }, '--tenant', 'default')
    const said = `Cannot open ${folder}: there is no symbolon.db in it`
    assert.deepEqual([status, err], [1, `symbolon keys recover: ${said}\n`])
  })

  test('a process that can reach the socket gets no key without a proof of the root key in use for that request', async (t) => {
    const { folder, where, key } = await preparedVault(t)
    const next = join(folder, 'next.key')
    await runSymbolon(['keys', 'create-root', '--to', next])
    const both = { ...where, SYMBOLON_ROOT_KEY_NEXT_FILE: next }
    const vault = await startHostedVault(folder, both)
    t.after(() => vault.stop())
    const [old, coming] = [await rootKeyIn(join(folder, 'root.key')), await rootKeyIn(next)]
    const request = { tenant: 'default', applicationId: null }
    const challenge = async (): Promise<string> => {
      let challenge = ''
      await giveOrder(folder, CHALLENGE_ORDER, (news) => (challenge = String(news['challenge'])))
      return challenge
    }
    const proven = async (root: RootKeys, by?: string) =>
      (await proveRecovery(request, by ?? (await challenge()), root, new SystemRandom())).order
    const refused = async (order: object): Promise<void> => {
      const news: object[] = []
      const given = giveOrder(folder, order, (it) => news.push(it))
      await assert.rejects(
        given,
        /was run without root key|does not know such an order|the challenge is unknown/,
      )
      assert.deepEqual(news, [])
    }
    await refused({ recover: request })
    for (const proofs of [[], [''], ['00'.repeat(69)], [null]])
      await refused({ recover: request, challenge: await challenge(), proofs })
    // A proof without a challenge of the service, or for another one.
    await refused(await proven(old, '00'.repeat(32)))
    await refused({ ...(await proven(old)), challenge: await challenge() })
    // A key that is held but not in use yet.
    await refused(await proven(coming))
    // A proof for another request.
    await refused({ ...(await proven(old)), recover: { ...request, tenant: 'other' } })
    // An order that was passed on to the service, and is sent again: its answer is of no use to the process in between, either.
    const order = await proven(old)
    const news: JsonObject[] = []
    assert.ok(await giveOrder(folder, order, (it) => news.push(it as JsonObject)))
    assert.deepEqual(Object.keys(Object(news[0]!['recovered'])), [
      'tenantId',
      'applicationId',
      'proof',
      'sealed',
    ])
    await refused(order)
    const replaced = await runSymbolon(['keys', 'rotate', '--root'], both)
    assert.equal(replaced.status, 0, replaced.err)
    // A key that is held but no longer in use.
    await refused(await proven(old))
    assert.equal((await call(vault.url, key, 'GET', '/applications')).body['data'].length, 2)
    const made = await recover(both, '--tenant', 'default', '--json')
    await assertManages(vault.url, JSON.parse(made.out))
  })
})

async function recover(
  variables: Record<string, string>,
  ...args: string[]
): ReturnType<typeof runSymbolon> {
  return await runSymbolon(['keys', 'recover', ...args], variables)
}

/** Runs SQL in the database of a vault, bypassing the program, and returns the rows. */
async function execute(where: PreparedVault['where'], sql: string): Promise<unknown[]> {
  const { SYMBOLON_DATABASE_URL: database, SYMBOLON_DATA_DIR: folder } = where
  if (database !== undefined) return (await query(database, sql)).rows
  using db = new DatabaseSync(join(folder!, 'symbolon.db'))
  return db.prepare(sql).all()
}

async function countOf(where: PreparedVault['where'], table: string): Promise<number> {
  return (await execute(where, `SELECT 1 FROM ${table}`)).length
}

async function rootKeyIn(file: string): Promise<RootKeys> {
  return new RootKeys([await FileKeyProvider.open(file, { createIfMissing: false })], null)
}

async function call(url: string, key: string, method: string, path: string) {
  const reply = await fetch(url + path, { method, headers: { 'BT-API-KEY': key } })
  const text = await reply.text()
  return { status: reply.status, body: text === '' ? {} : JSON.parse(text) }
}

/** Deletes the key with itself, as a mistaken client would. */
async function deleteKey(url: string, key: string): Promise<void> {
  const { id } = (await call(url, key, 'GET', '/applications/key')).body
  const [only] = (await call(url, key, 'GET', `/applications/${id}/keys`)).body
  const deleted = await call(url, key, 'DELETE', `/applications/${id}/keys/${only.id}`)
  assert.equal(deleted.status, 204)
  assert.equal((await call(url, key, 'GET', '/applications/key')).status, 401)
}

/** Asserts that the key may manage, and that its recovery is in the tenant's audit log. */
async function assertManages(url: string, made: Record<string, string>): Promise<void> {
  const key = made['api_key']!
  assert.equal((await call(url, key, 'GET', '/applications')).status, 200)
  const { status, body } = await call(url, key, 'GET', '/logs?entity_type=application_key')
  assert.equal(status, 200)
  const traces = (body.data as { trace_id: string }[]).map((it) => it.trace_id)
  assert.ok(traces.includes('key-recovery'), traces.join())
}

function assertNowhere(folder: string, printed: string, key: string): void {
  assert.ok(!printed.includes(key))
  for (const file of filesIn(folder)) assert.ok(!readFileSync(file, 'latin1').includes(key), file)
}
