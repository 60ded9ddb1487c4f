/** Tests how a supervisor starts and stops the service, and what the service reports when something is missing. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync, readFileSync, rmSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { startCluster } from '../kit/postgres/cluster.ts'
import { lacksPrograms } from '../kit/programs.ts'
import { runProgram, runSymbolon, startVault, temporaryFolder } from '../kit/running-vault.ts'
import { nextOutput } from '../kit/output-of.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const PROGRAM = join(ROOT, 'server/bin/symbolon.cjs')

test(
  'npm start forwards the signal to stop, and ends when the service has',
  { skip: lacksPrograms('npm') },
  async (t) => {
    const others = Object.entries(process.env).filter(([name]) => !name.startsWith('SYMBOLON_'))
    const own = { SYMBOLON_PORT: '0', SYMBOLON_DATA_DIR: temporaryFolder(t) }
    const npm = spawn('npm', ['start'], {
      cwd: ROOT,
      env: { ...Object.fromEntries(others), ...own },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let out = ''
    npm.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
    while (!out.includes('is ready at')) await nextOutput(npm)
    const url = /is ready at (\S+)/.exec(out)![1]!
    // Its streams close when no process holds them; an orphaned child would keep them open.
    const closed = once(npm, 'close')
    npm.kill('SIGTERM')
    await closed
    assert.match(out, /"event":"stopping","reason":"SIGTERM"/)
    await assert.rejects(fetch(`${url}/health/live`))
  },
)

describe('a folder that was used before', () => {
  test('without its database is begun anew, and the log says so', async (t) => {
    const folder = temporaryFolder(t)
    const first = await startVault(folder)
    await first.stop()
    assert.doesNotMatch(first.printed(), /database_gone/)
    const again = await startVault(folder)
    await again.stop()
    assert.doesNotMatch(again.printed(), /database_gone/)
    for (const lose of [rmSync, truncateSync]) {
      lose(join(folder, 'symbolon.db'))
      const vault = await startVault(folder)
      await vault.stop()
      assert.match(vault.printed(), /"level":"warn".*"event":"database_gone"/)
    }
  })

  test('with a database that is cut off is refused by its path', async (t) => {
    const folder = temporaryFolder(t)
    await (await startVault(folder)).stop()
    const database = join(folder, 'symbolon.db')
    truncateSync(database, 8192)
    const { status, err } = await runProgram(['serve', '--data-dir', folder])
    assert.equal(status, 1)
    assert.equal(err, `symbolon serve: Cannot use ${database} (database disk image is malformed)\n`)
  })
})

test('a service whose database has gone stops on its signal, and has said so once', async (t) => {
  const cluster = await startCluster()
  let there = true
  t.after(async () => {
    if (there) await cluster.stop()
  })
  const variables = { SYMBOLON_DATABASE_URL: cluster.url }
  const vault = await startVault(temporaryFolder(t), variables)
  await cluster.stop()
  there = false
  // Polls come twice a second, sweeps every ten seconds: many polls have failed when the second sweep has.
  const sweeps = (): number => vault.printed().match(/"sweep_failed"/g)?.length ?? 0
  while (sweeps() < 2) await setTimeout(50)
  const { status, out, err } = await vault.stop()
  assert.deepEqual([status, err], [0, ''])
  assert.equal(out.match(/"jobs_failed"/g)!.length, 1)
})

test('a root key file without a name is refused, and not taken for the one beside the data', async (t) => {
  const folder = join(temporaryFolder(t), 'data')
  const variables = { SYMBOLON_DATA_DIR: folder, SYMBOLON_ROOT_KEY_FILE: ' ' }
  const { status, err } = await runProgram(['serve'], variables)
  assert.equal(status, 1)
  assert.equal(err, "symbolon serve: SYMBOLON_ROOT_KEY_FILE is ' ', but must be a path.\n")
})

test('a core dump of the service, or of a process that it starts, has none of its memory', async (t) => {
  const vault = await startVault(temporaryFolder(t))
  t.after(() => vault.stop())
  // Processes inherit it.
  const filter = readFileSync(`/proc/${vault.pid}/coredump_filter`, 'utf8')
  assert.equal(Number.parseInt(filter, 16), 0)
})

test('what cannot be printed is reported, by init as a failure', async (t) => {
  const full = openSync('/dev/full', 'w')
  const init = spawn(process.execPath, [PROGRAM, 'init', '--json'], {
    env: { PATH: process.env['PATH'], SYMBOLON_DATA_DIR: temporaryFolder(t) },
    stdio: ['ignore', full, 'pipe'],
  })
  let err = ''
  init.stderr!.on('data', (chunk: Buffer) => (err += chunk.toString()))
  const [status] = (await once(init, 'close')) as [number]
  assert.equal(status, 1)
  assert.equal(err, 'symbolon: Cannot write to the standard output (ENOSPC)\n')
})

test('the beginning of a name of two words is completed', async () => {
  const { status, err } = await runSymbolon(['callbacks'])
  assert.equal(status, 2)
  assert.equal(
    err,
    "There is no command 'callbacks', but 'callbacks list', 'callbacks replay'. Try: symbolon help\n",
  )
})

test(
  'a service that can no longer write its database logs the file and the cause, and ends with status 1',
  { skip: lacksPrograms('prlimit') },
  async (t) => {
    const folder = temporaryFolder(t)
    const vault = await startVault(folder)
    t.after(() => vault.stop('SIGKILL'))
    const key = /api_key\s+(\S+)/.exec(vault.greeting)![1]!
    const limited = spawn('prlimit', ['--pid', String(vault.pid), '--fsize=4096'])
    assert.deepEqual(await once(limited, 'close'), [0, null])
    const headers = { 'bt-api-key': key }
    // A write of its own, such as a checkpoint, may have ended it before.
    const answered = await fetch(`${vault.url}/applications`, { headers }).then(
      (it) => it.status,
      () => null,
    )
    assert.ok(answered === 503 || answered === null)
    while (!vault.printed().includes('"stopping"')) await setTimeout(20)
    const { status, out } = await vault.stop()
    const line = out.split('\n').find((it) => it.includes('"event":"store_failed"'))
    const file = `Cannot use ${join(folder, 'symbolon.db')}: the file would exceed the file size limit`
    assert.ok(line?.includes(file), out)
    assert.equal(status, 1)
  },
)
