/** One flipped bit in each kind of encrypted value: `symbolon verify` names it, and a backup restores everything else. */
import assert from 'node:assert/strict'
import { chmodSync, cpSync, existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, describe, test, type TestContext } from 'node:test'
import { FileKeyProvider } from '../../src/adapters/local-keyring/file-key-provider.ts'
import { COMMANDS } from '../../src/cli/commands.ts'
import type { ValueKind } from '../../src/ports/unreadable-value.ts'
import { eachKindVault, flipBit, VALUE_KINDS } from '../damage/each-kind.ts'
import { startHostedVault } from '../kit/hosted-vault.ts'
import { runSymbolon, temporaryFolder, type Finished } from '../kit/running-vault.ts'

const PRIVATE = { mode: 0o600 }
const made = eachKindVault()
after(async () => (await made).remove())

describe('symbolon verify', () => {
  test('finds nothing in an intact vault, and leaves it as it was', async (t) => {
    const { folder } = await copied(t)
    const before = readFileSync(join(folder, 'symbolon.db'))
    const { status, out, err } = await run(folder, 'verify')
    assert.deepEqual([status, err], [0, ''])
    assert.match(out, /^\d+ values decrypted, 0 damaged\n$/)
    assert.ok(readFileSync(join(folder, 'symbolon.db')).equals(before))
  })

  for (const kind of VALUE_KINDS) {
    test(`names a damaged ${kind}, wherever the bit was flipped`, async (t) => {
      for (const at of [0, 0.5, 0.999]) {
        const { folder, tenantId } = await copied(t)
        flipBit({ folder, tenantId }, kind, { at })
        const { status, out } = await run(folder, 'verify', '--json')
        const [found, sum] = linesOf(out)
        assert.deepEqual([status, found!['kind'], sum!['damaged']], [1, kind, 1])
        assert.equal(found!['tenant'], kind === 'root_key_check' ? null : tenantId)
      }
    })
  }

  test('names every value under a damaged data key', async (t) => {
    const { folder, tenantId } = await copied(t)
    flipBit({ folder, tenantId }, 'tenant_key', { purpose: 'enc' })
    const { status, out } = await run(folder, 'verify', '--json', '--tenant', tenantId)
    const kinds = linesOf(out).map((it) => it['kind'])
    assert.equal(status, 1)
    assert.deepEqual(
      new Set(kinds),
      new Set([...VALUE_KINDS.filter((it) => it !== 'root_key_check'), undefined]),
    )
  })

  test('runs beside the service', async (t) => {
    const { folder, tenantId } = await copied(t)
    flipBit({ folder, tenantId }, 'token_data')
    const vault = await startHostedVault(folder)
    try {
      const { status, out } = await runSymbolon(['verify', '--data-dir', folder])
      assert.equal(status, 1)
      assert.match(out, new RegExp(`^DAMAGED: token_data \\S+ of tenant ${tenantId}$`, 'm'))
    } finally {
      await vault.stop()
    }
  })

  test('continues an interrupted run from its file, reports the earlier findings again, and removes the file at the end', async (t) => {
    const { folder, tenantId, other } = await copied(t)
    flipBit({ folder, tenantId }, 'token_data')
    const file = join(folder, 'progress')
    const found = { tenant: tenantId, kind: 'token_data', id: 'found before' }
    const [first, second] = [tenantId, other.tenantId].toSorted()
    assert.equal(first, tenantId, 'tenants are verified in the order of their ids')
    const progress = {
      rootKey: (await rootKeyOf(folder)).id,
      values: 1000,
      damaged: [found],
      next: { tenantId: second, after: { table: 'tokens', row: '' } },
    }
    writeFileSync(file, JSON.stringify(progress), PRIVATE)
    const { status, out } = await run(folder, 'verify', '--resume', file)
    assert.equal(status, 1)
    // The damaged token of the first tenant is not read again.
    assert.equal(
      out,
      `DAMAGED: token_data found before of tenant ${tenantId}\n1001 values decrypted, 1 damaged\n`,
    )
    assert.ok(!existsSync(file))
  })

  test('keeps its progress in the file until it is done', async (t) => {
    const { folder } = await copied(t)
    const file = join(folder, 'none', 'progress')
    const refusal = /--resume is '.*progress', which cannot be written \(ENOENT\)\.$/
    await assert.rejects(run(folder, 'verify', '--resume', file), refusal)
  })

  test('checks the root key when it continues, too', async (t) => {
    const { folder, other } = await copied(t)
    const [file, key] = [join(folder, 'progress'), join(folder, 'other.key')]
    writeFileSync(key, Buffer.alloc(32, 7), PRIVATE)
    const next = { tenantId: other.tenantId, after: { table: 'tokens', row: '' } }
    const { id: rootKey } = await rootKeyOf(folder)
    writeFileSync(file, JSON.stringify({ rootKey, values: 1, damaged: [], next }), PRIVATE)
    const wrong = run(folder, 'verify', '--resume', file, '--root-key-file', key)
    await assert.rejects(wrong, /but root key [0-9a-f]{16} was given/)
    assert.ok(existsSync(file))
  })

  test('refuses a file that others could have written, and follows no link', async (t) => {
    const { folder } = await copied(t)
    const [file, victim] = [join(folder, 'progress'), join(folder, 'victim')]
    writeFileSync(file, '{}', PRIVATE)
    chmodSync(file, 0o666)
    await assert.rejects(run(folder, 'verify', '--resume', file), /private to it/)
    writeFileSync(victim, 'intact', PRIVATE)
    const link = join(folder, 'link')
    symlinkSync(victim, link)
    await assert.rejects(run(folder, 'verify', '--resume', link), /ELOOP/)
    assert.equal(readFileSync(victim, 'utf8'), 'intact')
  })

  test('shows no control characters of an id that was written into the database', async (t) => {
    const { folder, tenantId } = await copied(t)
    const db = new DatabaseSync(join(folder, 'symbolon.db'))
    db.prepare('UPDATE proxies SET id = ?').run('\u001b]0;pwned\u0007\nDAMAGED: none')
    db.close()
    const { status, out } = await run(folder, 'verify')
    assert.equal(status, 1)
    assert.match(
      out,
      new RegExp(
        `^DAMAGED: proxy_configuration [^\\p{Cc}]* of tenant ${tenantId}\\n\\d+ values`,
        'u',
      ),
    )
  })

  test('refuses a file of another vault, or that it did not write', async (t) => {
    const { folder } = await copied(t)
    const file = join(folder, 'progress')
    writeFileSync(file, '{"rootKey":"0000000000000000","values":1,"damaged":[]}', PRIVATE)
    await assert.rejects(
      run(folder, 'verify', '--resume', file),
      /belongs to another vault or tenant/,
    )
    writeFileSync(file, 'something else', PRIVATE)
    await assert.rejects(run(folder, 'verify', '--resume', file), /not a file that verify wrote/)
    assert.equal(readFileSync(file, 'utf8'), 'something else')
  })

  test('does not report a wrong root key as damage', async (t) => {
    const { folder } = await copied(t)
    const other = join(folder, 'other.key')
    writeFileSync(other, Buffer.alloc(32, 7), { mode: 0o600 })
    const wrong = run(folder, 'verify', '--root-key-file', other)
    await assert.rejects(wrong, /but root key [0-9a-f]{16} was given/)
  })

  test('creates nothing where there is no vault', async (t) => {
    const folder = join(temporaryFolder(t), 'none')
    await assert.rejects(run(folder, 'verify'), /there is no symbolon.db in it/)
    assert.ok(!existsSync(folder))
  })
})

describe('a service', () => {
  test('starts with a damaged root key check, names it and makes a new one', async (t) => {
    const vault = await copied(t)
    flipBit(vault, 'root_key_check')
    const serving = await startHostedVault(vault.folder)
    const { out } = await serving.stop()
    assert.match(out, /"event":"value_unreadable".*"kind":"root_key_check"/)
    assert.equal((await run(vault.folder, 'verify')).status, 0)
  })

  test('answers value_unreadable where it needs a damaged tenant key, and everything else as ever', async (t) => {
    const vault = await copied(t)
    flipBit(vault, 'tenant_key', { purpose: 'enc' })
    const serving = await startHostedVault(vault.folder)
    const made = await fetch(`${serving.url}/tokens`, {
      method: 'POST',
      headers: { 'bt-api-key': vault.writeKey, 'content-type': 'application/json' },
      body: JSON.stringify({ type: 'token', data: 'x' }),
    })
    const headers = { 'bt-api-key': vault.managementKey }
    const listed = await fetch(`${serving.url}/applications`, { headers })
    const { code } = (await made.json()) as { code: string }
    const { out } = await serving.stop()
    assert.deepEqual([made.status, code, listed.status], [500, 'value_unreadable', 200])
    assert.match(out, /"unreadable":\{"kind":"tenant_key","id":"enc\/1"\}/)
  })
})

describe('a backup of a vault with a damaged value', () => {
  for (const kind of VALUE_KINDS) {
    test(`of kind ${kind} is made and reported, and everything else is restored`, async (t) => {
      const vault = await copied(t)
      flipBit(vault, kind)
      const backup = await backUp(vault.folder)
      assert.equal(backup.status, 1)
      assert.match(backup.err, new RegExp(`^DAMAGED: ${kind} `, 'm'))
      assert.match(backup.err, /^1 values in .* are damaged/m)

      // The right root key is recognized by the tenant keys, so nothing is lost with its check.
      if (kind !== 'root_key_check') {
        await assert.rejects(restore(vault.folder, backup, 'refused'), /--skip-damaged/)
        assert.ok(!existsSync(join(vault.folder, 'refused')))
      }

      const restored = await restore(vault.folder, backup, 'restored', '--skip-damaged')
      assert.equal(restored.status, 0, restored.err)
      const lost = restored.out.split('\n').filter((it) => it.startsWith('LOST: '))
      assert.deepEqual([lost.length, lost[0]!.split(' ')[1]], [1, kind])
      const root = ['--root-key-file', join(vault.folder, 'root.key')]
      const again = await run(join(vault.folder, 'restored'), 'verify', ...root)
      assert.deepEqual([again.status, again.err], [0, ''])
      const audit = await run(join(vault.folder, 'restored'), 'audit verify', ...root)
      assert.equal(audit.status, 0, audit.out)
      const [before, later] = [countsOf(vault.folder), countsOf(join(vault.folder, 'restored'))]
      assert.deepEqual(later, { ...before, ...LOST_ROWS[kind] })
    })
  }

  test('loses all data of the tenant with a damaged data key, and none of another tenant', async (t) => {
    const vault = await copied(t)
    flipBit(vault, 'tenant_key', { purpose: 'enc' })
    const backup = await backUp(vault.folder)
    const restored = await restore(vault.folder, backup, 'restored', '--skip-damaged')
    assert.equal(restored.status, 0, restored.err)
    const folder = join(vault.folder, 'restored')
    cpSync(join(vault.folder, 'root.key'), join(folder, 'root.key'))
    const serving = await startHostedVault(folder)
    try {
      // Applications and their keys are not encrypted under it, so the tenant can continue.
      const headers = { 'bt-api-key': vault.managementKey }
      const reply = await fetch(`${serving.url}/applications`, { headers })
      assert.equal(reply.status, 200)
    } finally {
      await serving.stop()
    }
    const { tokens } = countsOf(folder)
    assert.equal(tokens, 1)
  })

  test('of an earlier version is verified in a migrated copy, and made as it is', async (t) => {
    const { folder } = await copied(t)
    const db = new DatabaseSync(join(folder, 'symbolon.db'))
    for (const it of ['inserted', 'updated', 'deleted']) db.exec(`DROP TRIGGER measure_${it}_job`)
    db.exec('DROP TABLE job_sizes; DROP TABLE notices; DROP TABLE transaction_keys')
    db.exec('PRAGMA user_version = 11')
    db.exec(
      'ALTER TABLE record_heads DROP COLUMN access_revision; ALTER TABLE record_heads DROP COLUMN access',
    )
    db.exec('ALTER TABLE sessions DROP COLUMN proof')
    db.exec('ALTER TABLE applications DROP COLUMN allowed_origins')
    db.close()
    const { status, err } = await backUp(folder)
    assert.deepEqual([status, err], [0, ''])
  })

  test('is restored with the settings of a root key that is being replaced', async (t) => {
    const { folder } = await copied(t)
    const backup = await backUp(folder)
    const other = join(folder, 'other.key')
    writeFileSync(other, Buffer.alloc(32, 7), PRIVATE)
    const keys = ['--root-key-file', other, '--root-key-next-file', join(folder, 'root.key')]
    const restored = await restore(folder, backup, 'restored', ...keys)
    assert.equal(restored.status, 0)
  })

  test('is made and reported when it cannot be verified', async (t) => {
    const { folder } = await copied(t)
    const none = ['--root-key-file', join(folder, 'none.key')]
    const unverified = await backUp(folder, ...none)
    assert.equal(unverified.status, 1)
    assert.match(unverified.err, /^The backup is made, but not verified: .*none\.key/)
    assert.ok(existsSync(unverified.file))
    const without = await backUp(folder, ...none, '--no-verify')
    assert.deepEqual([without.status, without.err], [0, ''])
  })

  test('leaves the audit log of a tenant whose index key was damaged verifiable, and able to grow', async (t) => {
    const vault = await copied(t)
    flipBit(vault, 'tenant_key', { purpose: 'idx' })
    const backup = await backUp(vault.folder)
    const restored = await restore(vault.folder, backup, 'restored', '--skip-damaged')
    assert.match(
      restored.out,
      /^LOST: tenant_key idx\/1 .* the audit log so far, applications, keys and sessions are taken to be genuine$/m,
    )
    const folder = join(vault.folder, 'restored')
    cpSync(join(vault.folder, 'root.key'), join(folder, 'root.key'))
    const before = await eventsOf(folder, vault.tenantId)
    const serving = await startHostedVault(folder)
    const headers = { 'bt-api-key': vault.managementKey, 'content-type': 'application/json' }
    const body = JSON.stringify({ name: 'x', type: 'private', permissions: ['token:read'] })
    const made = await fetch(`${serving.url}/applications`, { method: 'POST', headers, body })
    assert.ok(made.status < 300)
    assert.ok(!(await serving.stop()).out.includes('record_unsealed'))
    assert.ok((await eventsOf(folder, vault.tenantId)) > before)
  })

  test('records what was removed in the audit log', async (t) => {
    const vault = await copied(t)
    flipBit(vault, 'token_data')
    const backup = await backUp(vault.folder)
    await restore(vault.folder, backup, 'restored', '--skip-damaged')
    const root = ['--root-key-file', join(vault.folder, 'root.key')]
    const events = async (folder: string): Promise<number> =>
      await eventsOf(folder, vault.tenantId, ...root)
    const removed = await events(join(vault.folder, 'restored'))
    assert.ok(removed > (await events(vault.folder)))
  })
})

/** Rows of the restored vault that differ in number from those of the damaged one. */
const LOST_ROWS: Readonly<Record<ValueKind, Record<string, number>>> = {
  token_data: { tokens: 1, pending: 0, cvcs: 0 },
  security_code: { pending: 0, cvcs: 0 },
  pending_token_data: { pending: 0 },
  pending_security_code: { pending: 0 },
  idempotency_response: {},
  proxy_configuration: { proxies: 0 },
  reactor_configuration: { reactors: 0 },
  job_request: { jobs: 0 },
  job_result: { jobs: 0 },
  callback_secrets: {},
  tenant_key: {},
  root_key_check: {},
}

/** Returns the number of the last event that a checkpoint covers, of an intact audit log. */
async function eventsOf(folder: string, tenantId: string, ...more: string[]): Promise<number> {
  const { status, out } = await run(folder, 'audit verify', '--json', '--tenant', tenantId, ...more)
  assert.equal(status, 0, out)
  return Number(linesOf(out)[0]!['last'])
}

function countsOf(folder: string): Record<string, number> {
  const db = new DatabaseSync(join(folder, 'symbolon.db'), { readOnly: true })
  const count = (sql: string): number =>
    Number(db.prepare(`SELECT count(*) AS n FROM ${sql}`).get()!['n'])
  const tables = [
    'tenants',
    'tokens',
    'pending',
    'answers',
    'proxies',
    'reactors',
    'jobs',
    'callback_secrets',
  ]
  try {
    return {
      ...Object.fromEntries(tables.map((it) => [it, count(it)])),
      cvcs: count('tokens WHERE cvc IS NOT NULL'),
      applications: count('applications'),
    }
  } finally {
    db.close()
  }
}

async function rootKeyOf(folder: string) {
  return await FileKeyProvider.open(join(folder, 'root.key'), { createIfMissing: false })
}

/** A copy of the vault, for the test to damage. */
async function copied(t: TestContext) {
  const vault = await made
  const folder = temporaryFolder(t)
  cpSync(vault.folder, folder, { recursive: true, filter: (it) => !it.endsWith('.sock') })
  return { ...vault, folder }
}

/** Runs a command in this process, which is quicker. Rejects with the error that the program would print. */
async function run(folder: string, ...args: string[]): Promise<Finished> {
  const [name, ...rest] = args
  const command = COMMANDS.find((it) => it.name === name)!
  const flags: Record<string, string> = { 'data-dir': folder }
  for (let n = 0; n < rest.length; n++) {
    const flag = rest[n]!.slice(2)
    flags[flag] = command.flags[flag] === 'boolean' ? '' : rest[++n]!
  }
  const [out, err]: [string[], string[]] = [[], []]
  const runCommand = await command.load()
  const input = {
    flags,
    words: [],
    out: (it: string) => out.push(it),
    err: (it: string) => err.push(it),
  }
  const status = await runCommand(input)
  const text = (lines: string[]): string => lines.map((it) => `${it}\n`).join('')
  return { status, out: text(out), err: text(err) }
}

interface MadeBackup extends Finished {
  readonly secret: string
  readonly file: string
}

let backups = 0

async function backUp(folder: string, ...more: string[]): Promise<MadeBackup> {
  const [secret, file] = [`${folder}.${++backups}.secret`, join(folder, `${backups}.age`)]
  const recipient = (await run(folder, 'backup key', '--to', secret)).out.trim()
  const made = await run(folder, 'backup', '--to', file, '--recipient', recipient, ...more)
  return { ...made, secret, file }
}

function restore(folder: string, { secret, file }: MadeBackup, to: string, ...more: string[]) {
  const root = ['--root-key-file', join(folder, 'root.key')]
  const from = ['--from', file, '--identity', secret, '--all']
  return run(join(folder, to), 'restore', ...root, ...from, ...more)
}

function linesOf(out: string): Record<string, unknown>[] {
  return out
    .trim()
    .split('\n')
    .map((it) => JSON.parse(it) as Record<string, unknown>)
}
