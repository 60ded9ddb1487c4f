/** Data folders and keys with problems: doctor reports each, and its remedy works. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, describe, test, type TestContext } from 'node:test'
import { writeMoveMark } from '../../src/adapters/storage/sqlite/move-mark.ts'
import { startHostedVault } from '../kit/hosted-vault.ts'
import { runSymbolon } from '../kit/running-vault.ts'
import {
  assertAlone,
  assertFound,
  assertOk,
  backedUp,
  copyOf,
  examine,
  stoppedVault,
  type StoppedVault,
} from './doctor-stage.ts'

/** Tests break copies of it. */
const original = await stoppedVault({ after })
const restore = await backedUp(original)
const freshCopy = (t: TestContext): StoppedVault => copyOf(t, original)

/** Runs the last command in a remedy in a shell, as an operator would paste it. */
function follow(remedy: string): void {
  const [, command] = /^.*\b[Rr]un ((?:chmod|rm) .+)\.$/.exec(remedy)!
  const { status, stderr } = spawnSync('/bin/sh', ['-c', command!], { encoding: 'utf8' })
  assert.equal(status, 0, stderr)
}

function damage(folder: string, sql: string): void {
  const db = new DatabaseSync(join(folder, 'symbolon.db'))
  db.exec(sql)
  db.close()
}

describe('symbolon doctor on a data folder', () => {
  test('folder-permissions: finds a folder that other users may read', async (t) => {
    const { folder, variables } = freshCopy(t)
    chmodSync(folder, 0o755)
    follow(assertFound(await examine({ variables }), 'folder-permissions', 'failed', /chmod 0700/))
    assertOk(await examine({ variables }), 'folder-permissions')
  })

  test('folder-permissions: finds a file in its place, and skips what needs the folder', async (t) => {
    const { home, variables } = freshCopy(t)
    const file = join(home, 'file')
    writeFileSync(file, '')
    for (const more of [{}, { SYMBOLON_ROOT_KEY_FILE: join(home, 'root.key') }]) {
      const { SYMBOLON_ROOT_KEY_FILE: _file, ...beside } = variables
      const found = await examine({ variables: { ...beside, ...more, SYMBOLON_DATA_DIR: file } })
      assertFound(found, 'folder-permissions', 'failed', /Set SYMBOLON_DATA_DIR to a folder/)
      assertAlone(found, 'folder-permissions')
    }
    assertOk(await examine({ variables }), 'folder-permissions')
  })

  test('folder-permissions: finds a folder of another user', async (t) => {
    const { folder, variables } = freshCopy(t)
    const { uid } = statSync(folder)
    const found = await examine({ variables, machine: { user: uid + 1 } })
    assertFound(found, 'folder-permissions', 'failed', new RegExp(`as user ${uid}, or run chown`))
    assertOk(await examine({ variables, machine: { user: uid } }), 'folder-permissions')
  })

  test('folder-permissions: finds a world-writable parent folder', async (t) => {
    const { home, variables } = freshCopy(t)
    chmodSync(home, 0o777)
    follow(assertFound(await examine({ variables }), 'folder-permissions', 'failed', /chmod o-w/))
    assertOk(await examine({ variables }), 'folder-permissions')
  })

  test('file-permissions: finds a database that other users may read', async (t) => {
    const { folder, variables } = freshCopy(t)
    chmodSync(join(folder, 'symbolon.db'), 0o644)
    follow(
      assertFound(await examine({ variables }), 'file-permissions', 'failed', /chmod 0600 .*\.db'/),
    )
    assertOk(await examine({ variables }), 'file-permissions')
  })

  for (const name of ['backup-copy-Ab12Cd', 'restoring']) {
    test(`leftovers: finds the folder ${name} of a command that was killed`, async (t) => {
      const { folder, variables } = freshCopy(t)
      mkdirSync(join(folder, name))
      writeFileSync(join(folder, name, 'symbolon.db'), 'copy')
      follow(assertFound(await examine({ variables }), 'leftovers', 'warning', /rm -r/))
      assertOk(await examine({ variables }), 'leftovers')
    })
  }

  test('leftovers: finds the socket of a service that was killed', async (t) => {
    const { folder, variables } = freshCopy(t)
    const service = await startHostedVault(folder, variables)
    await service.stop('SIGKILL')
    const remedy = assertFound(await examine({ variables }), 'leftovers', 'warning', /rm -r/)
    assert.match(remedy, /symbolon\.sock'\.$/)
    follow(remedy)
    assertOk(await examine({ variables }), 'leftovers')
  })

  for (const finished of [true, false]) {
    test(`moved: finds a vault ${finished ? 'that was moved' : 'on its way'} to a database`, async (t) => {
      const { folder, variables } = freshCopy(t)
      writeMoveMark(folder, { id: 'move', finished })
      const remedy = assertFound(
        await examine({ variables }),
        'moved',
        'failed',
        finished ? /Set SYMBOLON_DATABASE_URL/ : /Run symbolon migrate/,
      )
      follow(remedy)
      assertOk(await examine({ variables }), 'moved')
    })
  }
})

describe('symbolon doctor on keys', () => {
  /** Breaks the root key file, expects the check to fail, restores the file as the remedy says, and expects it to pass. */
  async function breakRootKey(
    t: TestContext,
    harm: (file: string) => void,
    name: string,
    expected: RegExp,
  ): Promise<void> {
    const { home, variables } = freshCopy(t)
    const [file, copy] = [join(home, 'root.key'), join(home, 'copy.key')]
    copyFileSync(file, copy)
    harm(file)
    const found = await examine({ variables })
    const remedy = assertFound(found, name, 'failed', expected)
    assertAlone(found, name)
    if (remedy.startsWith('Run chmod')) follow(remedy)
    else {
      rmSync(file, { force: true })
      copyFileSync(copy, file)
      chmodSync(file, 0o400)
    }
    assertOk(await examine({ variables }), 'root-key-file', 'root-key', 'tenant-keys')
  }

  test('root-key-file: finds that it is missing', async (t) => {
    await breakRootKey(t, (it) => rmSync(it), 'root-key-file', /restore its copy/)
  })

  test('root-key-file: finds one that was truncated', async (t) => {
    const truncate = (it: string): void => truncateSync(it, 31)
    await breakRootKey(t, truncate, 'root-key-file', /Restore .* 32 bytes/)
  })

  test('root-key-file: finds one that other users may read', async (t) => {
    await breakRootKey(t, (it) => chmodSync(it, 0o644), 'root-key-file', /^Run chmod 0400/)
  })

  test('root-key-file: finds a path that leads nowhere', async (t) => {
    const { home, variables } = freshCopy(t)
    const wrong = { ...variables, SYMBOLON_ROOT_KEY_FILE: join(home, 'root.key', 'root.key') }
    const found = await examine({ variables: wrong })
    assertFound(found, 'root-key-file', 'failed', /Correct SYMBOLON_ROOT_KEY_FILE/)
    assertAlone(found, 'root-key-file')
    assertOk(await examine({ variables }), 'root-key-file')
  })

  test('root-key-file: finds a link', async (t) => {
    const link = (it: string): void => {
      rmSync(it)
      symlinkSync('copy.key', it)
    }
    await breakRootKey(t, link, 'root-key-file', /regular file/)
  })

  test('root-key: finds the key of another vault', async (t) => {
    const other = (it: string): void => writeFileSync(it, Buffer.alloc(32, 7), { mode: 0o600 })
    await breakRootKey(t, other, 'root-key', /Set SYMBOLON_ROOT_KEY_FILE/)
  })

  test('no finding shows a byte of a key', async (t) => {
    const { home, variables } = freshCopy(t)
    appendFileSync(join(home, 'root.key'), 'canary')
    const shown = JSON.stringify([...(await examine({ variables })).values()])
    assert.doesNotMatch(shown, /canary/)
  })

  test('root-key-place: finds the root key beside the data', async (t) => {
    const { home, folder, variables } = freshCopy(t)
    copyFileSync(join(home, 'root.key'), join(folder, 'root.key'))
    const beside = { ...variables, SYMBOLON_ROOT_KEY_FILE: '' }
    const { SYMBOLON_ROOT_KEY_FILE: _file, ...unset } = beside
    assertFound(
      await examine({ variables: unset }),
      'root-key-place',
      'warning',
      /set SYMBOLON_ROOT_KEY_FILE/,
    )
    rmSync(join(folder, 'root.key'))
    assertOk(await examine({ variables }), 'root-key-place', 'root-key')
  })

  test('next-root-key: finds one that does not exist, and then one in use', async (t) => {
    const { home, variables } = freshCopy(t)
    const next = join(home, 'next.key')
    const rotating = { ...variables, SYMBOLON_ROOT_KEY_NEXT_FILE: next }
    assertFound(
      await examine({ variables: rotating }),
      'next-root-key',
      'warning',
      /Run symbolon keys create-root --to .*next\.key'? and restart/,
    )
    assert.ok(!existsSync(next))
    const created = await runSymbolon(['keys', 'create-root', '--to', next])
    assert.equal(created.status, 0, created.err)
    assertFound(
      await examine({ variables: rotating }),
      'next-root-key',
      'warning',
      /Run symbolon keys rotate --root/,
    )
    const rotated = await runSymbolon(['keys', 'rotate', '--root'], rotating)
    assert.equal(rotated.status, 0, rotated.err)
    assertFound(
      await examine({ variables: rotating }),
      'next-root-key',
      'warning',
      /Set SYMBOLON_ROOT_KEY_FILE to .*next\.key, unset SYMBOLON_ROOT_KEY_NEXT_FILE/,
    )
    const followed = await examine({ variables: { ...variables, SYMBOLON_ROOT_KEY_FILE: next } })
    assert.ok(!followed.has('next-root-key'))
    assertOk(followed, 'root-key-file', 'root-key', 'tenant-keys')
  })

  test('next-root-key: asks for the copy of a key in use whose file is missing, and for no other key', async (t) => {
    const { home, variables } = freshCopy(t)
    const [next, copy] = [join(home, 'next.key'), join(home, 'copy.key')]
    const rotating = { ...variables, SYMBOLON_ROOT_KEY_NEXT_FILE: next }
    writeFileSync(next, Buffer.alloc(32, 9), { mode: 0o400 })
    const rotated = await runSymbolon(['keys', 'rotate', '--root'], rotating)
    const [, id] = /^root key (\S+): in use/m.exec(rotated.out)!
    renameSync(next, copy)
    const found = await examine({ variables: rotating })
    const expected = new RegExp(`Restore root key ${id} from its copy to .*next\\.key`)
    assertFound(found, 'next-root-key', 'failed', expected)
    assertAlone(found, 'next-root-key')
    for (const it of found.values()) assert.doesNotMatch(it.remedy ?? '', /create-root/, it.name)
    copyFileSync(copy, next)
    const restored = await examine({ variables: rotating })
    assertFound(restored, 'next-root-key', 'warning', /unset SYMBOLON_ROOT_KEY_NEXT_FILE/)
    assertOk(restored, 'root-key', 'tenant-keys')
  })

  test('next-root-key: has no key created while nothing says which key the vault uses', async (t) => {
    const { home, folder, variables } = freshCopy(t)
    const next = join(home, 'next.key')
    const rotating = { ...variables, SYMBOLON_ROOT_KEY_NEXT_FILE: next }
    const [file, copy] = [join(home, 'root.key'), join(home, 'copy.key')]
    renameSync(file, copy)
    assert.equal((await examine({ variables: rotating })).get('next-root-key')?.status, 'skipped')
    renameSync(copy, file)
    truncateSync(join(folder, 'symbolon.db'), 5_000)
    assert.equal((await examine({ variables: rotating })).get('next-root-key')?.status, 'skipped')
  })

  test('next-root-key: finds a path that leads nowhere', async (t) => {
    const { home, variables } = freshCopy(t)
    const next = join(home, 'root.key', 'next.key')
    const found = await examine({ variables: { ...variables, SYMBOLON_ROOT_KEY_NEXT_FILE: next } })
    assertFound(found, 'next-root-key', 'failed', /Correct SYMBOLON_ROOT_KEY_NEXT_FILE/)
    assertAlone(found, 'next-root-key')
    assert.match(found.get('root-key')!.message, /see the check next-root-key/)
  })

  test('root-key: finds that the value that proves it is damaged while tenant keys open', async (t) => {
    const { folder, variables } = freshCopy(t)
    damage(folder, 'UPDATE installation SET root_key_check = zeroblob(69)')
    const found = await examine({ variables })
    assertFound(found, 'root-key', 'warning', /Start the service again/)
    assertOk(found, 'tenant-keys')
    await (await startHostedVault(folder, variables)).stop()
    assertOk(await examine({ variables }), 'root-key', 'tenant-keys')
  })

  test('root-key: finds that it decrypts nothing although its id is right', async (t) => {
    const vault = freshCopy(t)
    damage(vault.folder, 'UPDATE installation SET root_key_check = zeroblob(69)')
    damage(vault.folder, 'UPDATE tenant_keys SET wrapped = zeroblob(69)')
    const found = await examine({ variables: vault.variables })
    assertFound(found, 'root-key', 'failed', /restore a backup .*\(symbolon restore\)/)
    assertAlone(found, 'root-key')
    assert.doesNotMatch(found.get('root-key')!.remedy!, /Set SYMBOLON_ROOT_KEY_FILE/)
    assertOk(await examine({ variables: await restore(vault) }), 'root-key', 'tenant-keys')
  })

  test('next-root-key: finds one that is given and was not switched to', async (t) => {
    const { home, variables } = freshCopy(t)
    const next = join(home, 'next.key')
    writeFileSync(next, Buffer.alloc(32, 9), { mode: 0o400 })
    const rotating = { ...variables, SYMBOLON_ROOT_KEY_NEXT_FILE: next }
    assertFound(
      await examine({ variables: rotating }),
      'next-root-key',
      'warning',
      /or unset SYMBOLON_ROOT_KEY_NEXT_FILE/,
    )
    assert.ok(!(await examine({ variables })).has('next-root-key'))
    rmSync(join(home, 'root.key'))
    writeFileSync(join(home, 'root.key'), Buffer.alloc(32, 7), { mode: 0o400 })
    const other = await examine({ variables: rotating })
    assertAlone(other, 'root-key')
    assert.equal(other.get('next-root-key')?.status, 'skipped')
  })

  test('tenant-keys: finds that no tenant is left, until one is created', async (t) => {
    const { folder, apiKey, variables } = freshCopy(t)
    const service = await startHostedVault(folder, variables)
    const deleted = await fetch(`${service.url}/tenants/self`, {
      method: 'DELETE',
      headers: { 'BT-API-KEY': apiKey },
    })
    assert.equal(deleted.status, 204)
    await service.stop()
    assertFound(await examine({ variables }), 'tenant-keys', 'warning', /run symbolon init/)
    assert.equal((await runSymbolon(['init'], variables)).status, 0)
    assertOk(await examine({ variables }), 'tenant-keys', 'audit-chain')
  })

  test('tenant-keys: finds damaged keys, which a backup still has intact', async (t) => {
    const vault = freshCopy(t)
    damage(vault.folder, "UPDATE tenant_keys SET wrapped = zeroblob(69) WHERE purpose = 'fp'")
    const { variables } = vault
    const found = await examine({ variables })
    assertFound(
      found,
      'tenant-keys',
      'failed',
      /restore a backup that holds them intact \(symbolon restore\)/,
    )
    assertAlone(found, 'tenant-keys')
    assertOk(found, 'root-key')
    assertOk(await examine({ variables: await restore(vault) }), 'tenant-keys')
  })
})
