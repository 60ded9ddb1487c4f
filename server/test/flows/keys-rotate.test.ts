/** `symbolon keys rotate` as an operator runs it, with a service and without. */
import assert from 'node:assert/strict'
import {
  copyFileSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { preparedVault, STORES, type PreparedVault } from '../kit/prepared-vault.ts'
import { startHostedVault } from '../kit/hosted-vault.ts'
import { runProgram, runSymbolon, temporaryFolder } from '../kit/running-vault.ts'

for (const store of STORES) {
  describe(`the root key of a vault on ${store}`, () => {
    test('is replaced while the service runs with both keys, and each next start works', async (t) => {
      const { folder, next, where, both, key } = await stage(t, store)
      const created = await runSymbolon(['keys', 'create-root', '--to', next])
      const [, id] = /^root key ([0-9a-f]{16}): written to \S+, not in use yet$/m.exec(created.out)!
      const vault = await startHostedVault(folder, both)
      t.after(() => vault.stop())
      const { status, out, err } = await rotateRoot(both)
      assert.deepEqual([status, err], [0, ''])
      assert.match(out, new RegExp(`^root key ${id}: in use, 3 keys wrapped anew$`, 'm'))
      assert.ok(out.includes(`set for each server\nSYMBOLON_ROOT_KEY_FILE=${next}, unset`))
      assert.match((await rotateRoot(both)).out, /in use, 0 keys wrapped anew/)
      await works(vault.url, key)
      await vault.stop()

      const old = await runProgram(['serve'], where)
      assert.equal(old.status, 1)
      assert.match(old.err, /was set up with root key [0-9a-f]{16}, but/)

      for (const settings of [both, { ...where, SYMBOLON_ROOT_KEY_FILE: next }]) {
        const later = await startHostedVault(folder, settings)
        t.after(() => later.stop())
        await works(later.url, key)
        await later.stop()
      }
    })

    test('is not replaced by a key that the service was started without', async (t) => {
      const { folder, next, where, both, key } = await stage(t, store)
      // Without the setting, and with the setting but before the file was there.
      for (const variables of [where, both]) {
        const vault = await startHostedVault(folder, variables)
        t.after(() => vault.stop())
        await works(vault.url, key)
        createRootKey(next)
        const { status, out, err } = await rotateRoot(both)
        assert.deepEqual([status, out], [1, ''])
        assert.match(
          err,
          /the service was started without root key [0-9a-f]{16}\. Set SYMBOLON_ROOT/,
        )
        const stopped = await vault.stop()
        const missing = /"level":"warn".*"event":"root_key_next_missing"/
        assert.equal(missing.test(stopped.out), variables === both)
        rmSync(next)
      }
      const again = await startHostedVault(folder, where)
      t.after(() => again.stop())
      await works(again.url, key)
    })

    test('is replaced by the command itself while the service is stopped', async (t) => {
      const { folder, next, both, key } = await stage(t, store)
      const early = await rotateRoot(both)
      assert.equal(early.status, 1)
      assert.match(
        early.err,
        /there is no such file: create the new root key with `symbolon keys cr/,
      )
      assert.deepEqual(
        readdirSync(folder).filter((it) => it.endsWith('.key')),
        ['root.key'],
      )

      createRootKey(next)
      const { status, out, err } = await rotateRoot(both)
      assert.deepEqual([status, err], [0, ''])
      assert.match(out, /in use, 3 keys wrapped anew/)
      const verified = await runSymbolon(['audit', 'verify'], both)
      assert.equal(verified.status, 0, verified.err)
      const vault = await startHostedVault(folder, both)
      t.after(() => vault.stop())
      await works(vault.url, key)
    })
  })
}

test('the root key is not replaced when the next start would not find the new key, or the old', async (t) => {
  const { folder, next, where, both, key } = await stage(t, 'SQLite')
  createRootKey(next)
  const vault = await startHostedVault(folder, both)
  t.after(() => vault.stop())
  const elsewhere = join(temporaryFolder(t), 'next.key')
  renameSync(next, elsewhere)
  const command = { ...where, SYMBOLON_ROOT_KEY_NEXT_FILE: elsewhere }
  const gone = await rotateRoot(command)
  assert.match(gone.err, /next start of the service would fail: neither .* names a file with root/)
  renameSync(elsewhere, next)
  const first = join(folder, 'root.key')
  renameSync(first, elsewhere)
  const without = await rotateRoot(both)
  assert.match(without.err, /next start of the service would fail: Cannot open the root key file/)
  assert.deepEqual([gone.status, without.status], [1, 1])
  renameSync(elsewhere, first)
  await works(vault.url, key)
  await vault.stop()
  const again = await startHostedVault(folder, where)
  t.after(() => again.stop())
  await works(again.url, key)
})

test('the root key is not replaced while another server on the database lacks the new one, which the error names', async (t) => {
  const { folder, next, where, both, key } = await stage(t, 'PostgreSQL')
  createRootKey(next)
  const elsewhere = temporaryFolder(t)
  copyFileSync(join(folder, 'root.key'), join(elsewhere, 'root.key'))
  const vault = await startHostedVault(folder, both)
  t.after(() => vault.stop())
  const lacking = await startHostedVault(elsewhere, { ...where, SYMBOLON_DATA_DIR: elsewhere })
  t.after(() => lacking.stop())
  const alone = { ...both, SYMBOLON_DATA_DIR: temporaryFolder(t) }
  copyFileSync(join(folder, 'root.key'), join(alone.SYMBOLON_DATA_DIR, 'root.key'))
  // By a service, and by the command itself on a machine without one.
  for (const variables of [both, alone]) {
    const { status, out, err } = await rotateRoot(variables)
    assert.deepEqual([status, out], [1, ''])
    assert.match(
      err,
      new RegExp(`these servers were started without root key .*\\(${lacking.pid}\\)\\. Set`),
    )
    assert.ok(!err.includes(`(${vault.pid})`), err)
  }
  await lacking.stop()
  const holding = await startHostedVault(elsewhere, { ...both, SYMBOLON_DATA_DIR: elsewhere })
  t.after(() => holding.stop())
  const { status, err } = await rotateRoot(both)
  assert.deepEqual([status, err], [0, ''])
  for (const { url } of [vault, holding]) await works(url, key)
})

describe('symbolon keys create-root', () => {
  test('writes 32 bytes that only the owner can read, and prints the next steps', async (t) => {
    const to = join(temporaryFolder(t), 'next.key')
    const { status, out, err } = await runSymbolon(['keys', 'create-root', '--to', to])
    assert.deepEqual([status, err], [0, ''])
    assert.deepEqual([statSync(to).size, statSync(to).mode & 0o777], [32, 0o600])
    for (const what of ['Keep a copy', `SYMBOLON_ROOT_KEY_NEXT_FILE=${to}`, 'keys rotate --root']) {
      assert.ok(out.includes(what), out)
    }
    assert.ok(!out.includes(readFileSync(to).toString('hex')))
    assert.deepEqual(readdirSync(join(to, '..')), ['next.key'])
  })

  test('overwrites no file, and requires a file name', async (t) => {
    const to = join(temporaryFolder(t), 'next.key')
    writeFileSync(to, 'precious')
    const { status, out, err } = await runSymbolon(['keys', 'create-root', '--to', to])
    assert.deepEqual([status, out], [1, ''])
    const said = `--to is '${to}', which already exists and is not overwritten.`
    assert.equal(err, `symbolon keys create-root: ${said}\n`)
    assert.equal(readFileSync(to, 'latin1'), 'precious')
    const unnamed = await runSymbolon(['keys', 'create-root'])
    assert.match(unnamed.err, /--to is missing/)
  })
})

test('what it cannot do it says in one sentence, and changes nothing', async (t) => {
  const { folder } = await preparedVault(t)
  const vault = await startHostedVault(folder)
  t.after(() => vault.stop())
  const run = (...args: string[]) => runSymbolon(['keys', 'rotate', '--data-dir', folder, ...args])
  const missing = await run('--root')
  assert.match(missing.err, /SYMBOLON_ROOT_KEY_NEXT_FILE/)
  const nobody = await run('--tenant', '00000000-0000-4000-8000-000000000001')
  assert.match(nobody.err, /There is no tenant 00000000/)
  const both = await run('--root', '--tenant', '00000000-0000-4000-8000-000000000001')
  assert.match(both.err, /exclude each other/)
  for (const it of [missing, nobody, both]) assert.equal(it.status, 1)
})

test('where there is no vault none is made, nor a root key', async (t) => {
  const parent = temporaryFolder(t)
  const folder = join(parent, 'typo')
  const next = join(parent, 'next.key')
  for (const more of [[], ['--root', '--root-key-next-file', next]]) {
    const rotate = ['keys', 'rotate', '--data-dir', folder, ...more]
    const { status, out, err } = await runSymbolon(rotate)
    assert.deepEqual([status, out], [1, ''])
    const said = `Cannot open ${folder}: there is no symbolon.db in it`
    assert.equal(err, `symbolon keys rotate: ${said}\n`)
    assert.deepEqual(readdirSync(parent), [])
  }
})

interface RootKeyStage extends PreparedVault {
  /** The path of the next root key, which does not exist yet. */
  readonly next: string
  /** The settings with the current root key and the next. */
  readonly both: Readonly<Record<string, string>>
}

async function stage(t: TestContext, store: (typeof STORES)[number]): Promise<RootKeyStage> {
  const vault = await preparedVault(t, store)
  const next = join(vault.folder, 'next.key')
  return { ...vault, next, both: { ...vault.where, SYMBOLON_ROOT_KEY_NEXT_FILE: next } }
}

/** Creates a root key as `symbolon keys create-root` does. */
function createRootKey(file: string): void {
  writeFileSync(file, Buffer.alloc(32, 8), { mode: 0o600 })
}

async function rotateRoot(variables: PreparedVault['where']): ReturnType<typeof runSymbolon> {
  return await runSymbolon(['keys', 'rotate', '--root'], variables)
}

/** Reads, and writes what is sealed under the tenant's keys. */
async function works(url: string, key: string): Promise<void> {
  const headers = { 'BT-API-KEY': key, 'content-type': 'application/json' }
  const reply = await fetch(`${url}/applications/key`, { headers })
  assert.equal(reply.status, 200)
  const reactor = {
    name: 'made late',
    code: 'module.exports = async () => ({})',
    configuration: {},
  }
  const sent = { method: 'POST', headers, body: JSON.stringify(reactor) }
  assert.equal((await fetch(`${url}/reactors`, sent)).status, 201)
}
