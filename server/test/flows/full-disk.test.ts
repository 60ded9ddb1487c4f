/** Commands and the service on a disk that is full or read-only: the error names the file and the cause. */
import assert from 'node:assert/strict'
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { AgeIdentity } from '../../src/adapters/age/age-keys.ts'
import { bareEnvironment } from '../kit/environment.ts'
import { lacksMounts } from '../kit/programs.ts'
import { type Finished, runProgram, startVault, temporaryFolder } from '../kit/running-vault.ts'
import { nextOutput } from '../kit/output-of.ts'

const PROGRAM = fileURLToPath(new URL('../../bin/symbolon.cjs', import.meta.url))
const ENOSPC = '(ENOSPC: no space left on device, write)'
const FULL = '(database or disk is full)'

/** Shell functions for a small disk that only the script and its children see. */
const PRELUDE = `
  mount -t tmpfs -o size=4m none "$DISK" || exit
  fill() { cat /dev/zero > "$DISK/filler" 2>/dev/null || true; }
  # Without the source, mount repeats the owner of the mount, which the namespace of an ordinary user rejects.
  freeze() { mount -o remount,ro none "$DISK" || exit; }
  symbolon() { "$NODE" "$PROGRAM" "$@"; }
  vault() { mkdir -m 700 "$DISK/v" && cp -p "$VAULT/symbolon.db" "$VAULT/root.key" "$DISK/v"; }
`

interface SmallDisk {
  readonly disk: string
  /** Runs a shell script, in a namespace where the disk is mounted. */
  readonly run: (script: string) => Promise<Finished>
}

const skip = lacksMounts()

let source: Source
if (skip === false) {
  const folder = temporaryFolder({ after })
  before(async () => {
    source = await makeSource(folder)
  })
}

describe('on a full disk', { skip }, () => {
  const commands: [name: string, command: string, refusal: (v: string) => string][] = [
    ['serve', 'serve', full('symbolon.db', ENOSPC)],
    ['init', 'init', full('symbolon.db', ENOSPC)],
    ['audit verify', 'audit verify', full('symbolon.db', ENOSPC)],
    ['keys rotate', 'keys rotate', full('symbolon.db', ENOSPC)],
    ['backup', 'backup --to "$DISK/b" --recipient "$RECIPIENT"', full('symbolon.db', ENOSPC)],
  ]
  for (const [name, command, refusal] of commands) {
    test(`${name} names the database and says that the disk is full`, async (t) => {
      const { disk, run } = smallDisk(t)
      const { status, err } = await run(`vault; fill; symbolon ${command} --data-dir "$DISK/v"`)
      assert.equal(err, `symbolon ${name}: ${refusal(join(disk, 'v'))}\n`)
      assert.equal(status, 1)
    })
  }

  test('audit verify needs no more than the companion file for reading', async (t) => {
    const { run } = smallDisk(t)
    const verify = 'symbolon audit verify --data-dir "$DISK/v"'
    const { status, out, err } = await run(
      `vault; fill; truncate -s -36k "$DISK/filler"; ${verify}`,
    )
    assert.equal(err, '')
    assert.equal(status, 0)
    assert.match(out, /: intact, events 1 to \d+/)
  })

  test('a new vault names the file that finds no room', async (t) => {
    const { disk, run } = smallDisk(t)
    const v = join(disk, 'v')
    const first = await run('fill; symbolon init --data-dir "$DISK/v"')
    assert.equal(first.err, `symbolon init: ${full('symbolon.db', FULL)(v)}\n`)
    const room = 'fill; truncate -s -400k "$DISK/filler"'
    const second = await run(`${room}; symbolon init --data-dir "$DISK/v"`)
    const key = `Cannot create the root key file ${v}/root.key: the disk is full ${ENOSPC}`
    assert.equal(second.err, `symbolon init: ${key}\n`)
  })

  test('backup names the copy that finds no room, and does not report damage', async (t) => {
    const { disk, run } = smallDisk(t)
    for (const room of ['100k', '$(($(stat -c %s "$DISK/v/symbolon.db") / 1024 + 8))k']) {
      const { status, err } = await run(
        `vault; symbolon audit verify --data-dir "$DISK/v" >/dev/null; fill; truncate -s -${room} "$DISK/filler"
        symbolon backup --to "$BACKUP-2" --recipient "$RECIPIENT" --data-dir "$DISK/v"`,
      )
      assert.equal(status, 1)
      assert.match(
        err,
        /^symbolon backup: Cannot use \S+backup-copy-\S+symbolon\.db: the disk is full/,
      )
      assert.ok(err.includes(join(disk, 'v')), err)
    }
  })

  test('backup --to and backup key --to say why, and leave no part of a file', async (t) => {
    const { disk, run } = smallDisk(t)
    for (const [name, flags] of [
      ['backup', '--data-dir "$VAULT" --recipient "$RECIPIENT"'],
      ['backup key', ''],
    ]) {
      const { err, out } = await run(`fill; symbolon ${name} ${flags} --to "$DISK/b"; ls "$DISK"`)
      const flag = `--to is '${join(disk, 'b')}'`
      assert.equal(
        err,
        `symbolon ${name}: ${flag}, which cannot be written: the disk is full (ENOSPC).\n`,
      )
      assert.equal(out, 'filler\n')
    }
  })

  test('restore names the file that it writes', async (t) => {
    const { disk, run } = smallDisk(t)
    const script = `mkdir -m 700 "$DISK/v"; cp -p "$VAULT/root.key" "$DISK/v"; fill
      symbolon restore --data-dir "$DISK/v" --from "$BACKUP" --identity "$IDENTITY"; ls "$DISK/v"`
    const { err, out } = await run(script)
    const file = join(disk, 'v/restoring/symbolon.db')
    assert.equal(err, `symbolon restore: Cannot write ${file}: the disk is full ${ENOSPC}\n`)
    assert.equal(out, 'root.key\n')
  })

  test('keys create-root names the new root key', async (t) => {
    const { disk, run } = smallDisk(t)
    const { err } = await run('fill; symbolon keys create-root --to "$DISK/k"')
    const key = `Cannot create the root key file ${disk}/k: the disk is full ${ENOSPC}`
    assert.equal(err, `symbolon keys create-root: ${key}\n`)
  })

  test('a service answers 503, logs the file and the cause, and goes on once there is room', async (t) => {
    const { disk } = smallDisk(t)
    let printed = ''
    const script = `vault
      "$NODE" "$PROGRAM" serve --data-dir "$DISK/v" & server=$!
      read _; fill; echo filled; read _; rm "$DISK/filler"; echo freed; read _; kill $server; wait $server`
    const child = inNamespace(disk, script)
    child.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()))
    // Each read then ends, and the script stops the service.
    t.after(() => child.stdin.end())
    const until = async (text: RegExp): Promise<RegExpExecArray> => {
      for (;;) {
        const found = text.exec(printed)
        if (found !== null) return found
        await nextOutput(child)
      }
    }
    const url = (await until(/is ready at (\S+)/))[1]!
    const ask = async (): Promise<number> =>
      (await fetch(`${url}/applications`, { headers: { 'bt-api-key': source.apiKey } })).status
    assert.equal(await ask(), 200)
    child.stdin.write('\n')
    await until(/filled/)
    assert.equal(await ask(), 503)
    const line = (await until(/\{[^\n]*"event":"request_failed"[^\n]*/))[0]
    const cause = `Cannot use ${join(disk, 'v/symbolon.db')}: the disk is full`
    assert.ok(line.includes(cause), line)
    child.stdin.write('\n')
    await until(/freed/)
    assert.equal(await ask(), 200)
    const closed = once(child, 'close')
    child.stdin.write('\n')
    assert.deepEqual(await closed, [0, null])
  })
})

describe('on a read-only file system', { skip }, () => {
  const commands: [name: string, flags: string, refusal: (v: string) => string][] = [
    ['serve', '', (v) => `Cannot use ${v} as the data folder: the file system is read-only`],
    ['init', '', (v) => `Cannot use ${v} as the data folder: the file system is read-only`],
    ['audit verify', '', (v) => `Cannot use ${v}/symbolon.db: the file system is read-only`],
    ['keys rotate', '', (v) => `Cannot use ${v}/symbolon.db: the file system is read-only`],
    [
      'restore',
      '--from "$BACKUP" --identity "$IDENTITY"',
      (v) => `Cannot write ${v}/restoring/symbolon.db: the file system is read-only`,
    ],
    ['backup key', '--to "$DISK/b"', () => 'which cannot be written: the file system is'],
  ]
  test('verify reads the vault all the same', async (t) => {
    const { run } = smallDisk(t)
    const { status, out, err } = await run('vault; freeze; symbolon verify --data-dir "$DISK/v"')
    assert.deepEqual([status, err], [0, ''])
    assert.match(out, /^\d+ values decrypted, 0 damaged\n$/)
  })

  for (const [name, flags, refusal] of commands) {
    test(`${name} says so, and names the file`, async (t) => {
      const { disk, run } = smallDisk(t)
      const empty = name === 'restore' ? 'rm "$DISK"/v/symbolon.*;' : ''
      const folder = name === 'backup key' ? '' : '--data-dir "$DISK/v"'
      const { status, err } = await run(
        `vault; ${empty} freeze; symbolon ${name} ${folder} ${flags}`,
      )
      assert.ok(err.startsWith(`symbolon ${name}: `), err)
      assert.ok(err.includes(refusal(join(disk, 'v'))), err)
      assert.equal(status, 1)
    })
  }
})

function full(file: string, cause: string): (folder: string) => string {
  return (folder) => `Cannot use ${join(folder, file)}: the disk is full ${cause}`
}

interface Source {
  /** The data folder of a vault that was stopped. */
  readonly vault: string
  readonly apiKey: string
  readonly identityFile: string
  readonly recipient: string
  readonly backup: string
}

async function makeSource(folder: string): Promise<Source> {
  const vault = join(folder, 'vault')
  const served = await startVault(vault)
  const apiKey = /api_key\s+(\S+)/.exec(served.greeting)![1]!
  await served.stop()
  const { identity, secret } = await AgeIdentity.make()
  const [identityFile, backup] = [join(folder, 'identity'), join(folder, 'backup')]
  writeFileSync(identityFile, `${secret}\n`)
  const recipient = String(identity.recipient)
  const flags = ['--to', backup, '--recipient', recipient, '--data-dir', vault]
  const { status, err } = await runProgram(['backup', ...flags])
  assert.equal(status, 0, err)
  // Without SQLite's companion files, as a service that stopped leaves it.
  const clean = join(folder, 'clean')
  mkdirSync(clean, { mode: 0o700 })
  for (const it of ['symbolon.db', 'root.key']) cpSync(join(vault, it), join(clean, it))
  return { vault: clean, apiKey, identityFile, recipient, backup }
}

function smallDisk(t: TestContext): SmallDisk {
  const disk = temporaryFolder(t)
  return {
    disk,
    run: async (script) => {
      const child = inNamespace(disk, script)
      let [out, err] = ['', '']
      child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
      child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()))
      const [status] = (await once(child, 'close')) as [number | null]
      return { status, out, err }
    },
  }
}

function inNamespace(disk: string, script: string): ChildProcessWithoutNullStreams {
  return spawn('unshare', ['-rm', '--', 'sh', '-c', PRELUDE + script], {
    env: {
      ...bareEnvironment(),
      NODE: process.execPath,
      PROGRAM,
      DISK: disk,
      VAULT: source.vault,
      BACKUP: source.backup,
      IDENTITY: source.identityFile,
      RECIPIENT: source.recipient,
      SYMBOLON_PORT: '0',
    },
  })
}
