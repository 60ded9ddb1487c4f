/** `symbolon backup` and `symbolon restore` as an operator runs them. */
import assert from 'node:assert/strict'
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test, type TestContext } from 'node:test'
import { FileKeyProvider } from '../../src/adapters/local-keyring/file-key-provider.ts'
import { LocalKeyring } from '../../src/adapters/local-keyring/local-keyring.ts'
import { SqliteStore } from '../../src/adapters/storage/sqlite/store.ts'
import { SystemRandom } from '../../src/adapters/system/system-random.ts'
import { newJob } from '../../src/reactors/jobs/stages.ts'
import { backUpUnderLoad } from '../backup/run.ts'
import { runSymbolon, temporaryFolder } from '../kit/running-vault.ts'

test('every token acknowledged before a backup began is in what is restored of it', async (t) => {
  const folder = temporaryFolder(t)
  const about = { folder, tokens: 500, backups: 2, callers: 2 }
  const tallies = await backUpUnderLoad({ ...about, report: () => {} })
  assert.ok(tallies[1]!.read > tallies[0]!.read && tallies[0]!.read >= 500)
  assert.deepEqual(
    readdirSync(join(folder, 'data')).filter((it) => it.startsWith('backup')),
    [],
  )
})

describe('symbolon restore', () => {
  test('stops at once under another root key, and names the one it takes', async (t) => {
    const { folder, file, run } = await backedUp(t)
    const other = join(folder, 'other.key')
    writeFileSync(other, Buffer.alloc(32, 5), { mode: 0o600 })
    const { status, err } = await run('--root-key-file', other)
    assert.equal(status, 1)
    const named = /root key ([0-9a-f]{16}) to use it/.exec(file.said)![1]!
    assert.match(
      err,
      new RegExp(`set up with root key ${named}, but root key [0-9a-f]{16} was given`),
    )
    assert.ok(!existsSync(join(folder, 'restored', 'symbolon.db')))
  })

  test('stops under another key of backups', async (t) => {
    const { folder, run } = await backedUp(t)
    const other = join(folder, 'other.secret')
    await runSymbolon(['backup', 'key', '--to', other])
    const { status, err } = await run('--identity', other)
    assert.equal(status, 1)
    assert.match(err, /the file is not for age1/)
    assert.ok(!existsSync(join(folder, 'restored')))
  })

  test('leaves nothing behind of a backup that was cut off', async (t) => {
    const { folder, file, run } = await backedUp(t)
    for (const length of [statSync(file.path).size - 1, 100_000]) {
      truncateSync(file.path, length)
      const { status, err } = await run()
      assert.equal(status, 1)
      assert.match(err, /altered or cut off/)
      assert.ok(!existsSync(join(folder, 'restored')))
    }
  })

  test('refuses a folder with something in it, and takes one with the root key alone', async (t) => {
    const { folder, data, run } = await backedUp(t)
    const target = join(folder, 'restored')
    mkdirSync(target)
    writeFileSync(join(target, 'something'), '')
    const refused = await run()
    assert.equal(refused.status, 1)
    assert.match(refused.err, /there is something in it/)
    assert.deepEqual(readdirSync(target), ['something'])

    const again = join(folder, 'again')
    mkdirSync(again)
    writeFileSync(join(again, 'root.key'), readFileSync(join(data, 'root.key')), {
      mode: 0o600,
    })
    const taken = await run(
      '--data-dir',
      again,
      '--root-key-file',
      join(again, 'root.key'),
      '--all',
    )
    assert.equal(taken.status, 0, taken.err)
    assert.deepEqual(readdirSync(again).toSorted(), ['root.key', 'symbolon.db'])
  })

  test('leaves no run that waited to be run a second time', async (t) => {
    const { folder, data, run } = await backedUp(t)
    const { status, err } = await run()
    assert.equal(status, 0, err)
    assert.deepEqual(await claims(data), [false])
    assert.deepEqual(await claims(join(folder, 'restored')), [true])
  })
})

describe('a file that a flag names', () => {
  test('is named with its flag where it cannot be read', async (t) => {
    const { folder, run } = await backedUp(t)
    const none = join(folder, 'none')
    for (const flag of ['from', 'identity']) {
      const { status, err } = await run(`--${flag}`, none)
      assert.equal(status, 1)
      assert.equal(
        err,
        `symbolon restore: --${flag} is '${none}', which cannot be read (ENOENT).\n`,
      )
    }
  })

  test('is distinguished from a folder', async (t) => {
    const { folder, run } = await backedUp(t)
    const { status, err } = await run('--from', folder)
    assert.equal(status, 1)
    const said = `--from is '${folder}', which is a folder: name the backup in it.`
    assert.equal(err, `symbolon restore: ${said}\n`)
  })

  test('is named with its flag where it cannot be written, or is there', async (t) => {
    const { folder, file, data } = await backedUp(t)
    const nowhere = join(folder, 'none', 'file')
    const backup = ['backup', '--data-dir', data, '--recipient', file.recipient]
    for (const command of [backup, ['backup', 'key']]) {
      const absent = await runSymbolon([...command, '--to', nowhere])
      assert.match(absent.err, / --to is '.*none\/file', which cannot be written \(ENOENT\)\.\n$/)
      const there = await runSymbolon([...command, '--to', file.path])
      assert.match(there.err, / --to is '.*', which already exists and is not overwritten\.\n$/)
    }
  })
})

describe('symbolon backup', () => {
  test('puts nothing in the file that can be read without the key, and is for the owner alone', async (t) => {
    const { file, secret } = await backedUp(t)
    const bytes = readFileSync(file.path, 'latin1')
    assert.ok(!bytes.includes('SQLite format') && !bytes.includes('tenant_keys'))
    assert.equal(statSync(join(secret, '..', 'backup.age')).mode & 0o777, 0o600)
    assert.equal(statSync(secret).mode & 0o777, 0o600)
  })

  test('can be restored with the secret of each recipient, and with no other', async (t) => {
    const { folder, file, data, secret, run } = await backedUp(t)
    const keys = ['escrow', 'auditor', 'stranger'].map((it) => join(folder, it))
    const recipients: string[] = []
    for (const it of keys) {
      recipients.push((await runSymbolon(['backup', 'key', '--to', it])).out.trim())
    }
    const [escrow, auditor] = recipients
    const to = join(folder, 'shared.age')
    const list = ['--recipient', file.recipient, '--recipient', `${escrow}, ${auditor},${escrow}`]
    const made = await runSymbolon(['backup', '--data-dir', data, '--to', to, ...list])
    assert.equal(made.status, 0, made.err)
    assert.ok(made.out.includes(`for ${file.recipient}, ${escrow}, ${auditor}\n`), made.out)
    assert.match(made.out, /the secret of one of these recipients/)
    let restores = 0
    const restored = (identity: string) =>
      run(
        '--from',
        to,
        '--data-dir',
        join(folder, `restored-${restores++}`),
        '--identity',
        identity,
      )
    for (const it of [secret, keys[0]!, keys[1]!]) {
      const { status, err } = await restored(it)
      assert.equal(status, 0, err)
    }
    const { status, err } = await restored(keys[2]!)
    assert.deepEqual(
      [status, err],
      [1, `symbolon restore: Cannot decrypt: the file is not for ${recipients[2]}\n`],
    )
  })

  test('is not made if one of several recipients is none', async (t) => {
    const { folder, file, data } = await backedUp(t)
    const to = join(folder, 'none.age')
    for (const wrong of ['age1q', '']) {
      const flags = ['--data-dir', data, '--to', to, '--recipient', `${file.recipient},${wrong}`]
      const { status, err } = await runSymbolon(['backup', ...flags])
      assert.equal(status, 1)
      assert.ok(err.includes(`--recipient is '${wrong}', but must be an age recipient`), err)
    }
    assert.ok(!existsSync(to))
  })

  test('is refused of a database that is damaged, of which nothing could be restored', async (t) => {
    const { folder, file, data } = await backedUp(t)
    const database = join(data, 'symbolon.db')
    const pages = openSync(database, 'r+')
    writeSync(pages, Buffer.alloc(3 * 4096, 7), 0, 3 * 4096, statSync(database).size / 2)
    closeSync(pages)
    const to = join(folder, 'damaged.age')
    const args = ['backup', '--data-dir', data, '--to', to, '--recipient', file.recipient]
    const { status, out, err } = await runSymbolon(args)
    assert.deepEqual([status, out], [1, ''])
    assert.ok(err.startsWith(`symbolon backup: Cannot copy ${database}, which is damaged: `), err)
    assert.deepEqual(readdirSync(folder), ['backup.age'])
    assert.ok(!readdirSync(data).some((it) => it.startsWith('backup')))
  })

  test('does not write over a file, and says what a recipient has to be', async (t) => {
    const { folder, file, data: vault } = await backedUp(t)
    const data = ['--data-dir', vault]
    const before = readFileSync(file.path)
    const over = await runSymbolon([
      'backup',
      ...data,
      '--to',
      file.path,
      '--recipient',
      file.recipient,
    ])
    assert.equal(over.status, 1)
    assert.ok(readFileSync(file.path).equals(before))
    const wrong = await runSymbolon([
      'backup',
      ...data,
      '--to',
      `${file.path}2`,
      '--recipient',
      'age1q',
    ])
    assert.match(wrong.err, /--recipient is 'age1q', but must be an age recipient/)
    assert.deepEqual(readdirSync(folder).toSorted(), ['backup.age'])
  })
})

/** A vault and a backup of it, made once. */
const made = makeBackup()

async function makeBackup() {
  const folder = mkdtempSync(join(tmpdir(), 'symbolon-backup-'))
  after(() => rmSync(folder, { recursive: true }))
  const data = join(folder, 'data')
  await runSymbolon(['init', '--data-dir', data])
  await addRun(data)
  const secret = join(folder, 'secret')
  const recipient = (await runSymbolon(['backup', 'key', '--to', secret])).out.trim()
  const args = ['--data-dir', data, '--to', join(folder, 'backup.age'), '--recipient', recipient]
  const { status, out, err } = await runSymbolon(['backup', ...args])
  assert.equal(status, 0, err)
  return { folder, data, secret, recipient, said: out }
}

/** Accepts an asynchronous invocation that has not run yet. */
async function addRun(data: string): Promise<void> {
  const store = await SqliteStore.open({ folder: data })
  const keyProvider = await FileKeyProvider.open(join(data, 'root.key'), { createIfMissing: false })
  const keyring = new LocalKeyring(keyProvider, new SystemRandom(), (id) => store.tenants.keys(id))
  const [tenantId] = await store.tenants.ids()
  const initiator = { applicationId: ID, keyId: ID, destinations: null, session: null }
  const state = {
    traceId: ID,
    initiator,
    run: null,
    callbackUrl: null,
    resultUntil: null,
    failure: null,
    status: null,
  }
  const job = newJob(await keyring.open(tenantId!), { id: ID, reactorId: ID, now: 0 }, state)
  assert.equal(await store.commit(tenantId!, [{ kind: 'insert', entity: 'job', row: job }]), null)
  await store.close()
}

const ID = '01945d00-0000-4000-8000-00000000000a'

/** Of the runs in a data folder, which were begun. */
async function claims(folder: string): Promise<boolean[]> {
  const store = await SqliteStore.open({ folder })
  const [tenantId] = await store.tenants.ids()
  const query = { stage: 'run', now: Number.MAX_SAFE_INTEGER, limit: 10, without: [] } as const
  const runs = await store.jobs.due(tenantId!, query)
  await store.close()
  return runs.map((it) => it.claimed)
}

/** A copy of the backup, and how to restore it; flags given later win. */
async function backedUp(t: TestContext) {
  const { data, secret, recipient, said, folder: origin } = await made
  const folder = temporaryFolder(t)
  const path = join(folder, 'backup.age')
  copyFileSync(join(origin, 'backup.age'), path)
  const usual = {
    '--data-dir': join(folder, 'restored'),
    '--from': path,
    '--identity': secret,
    '--root-key-file': join(data, 'root.key'),
  }
  const run = (...own: string[]) =>
    runSymbolon(['restore', ...Object.entries(usual).flat(), ...own])
  return { folder, data, secret, file: { path, recipient, said }, run }
}
