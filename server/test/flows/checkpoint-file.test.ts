/** The file to which a service appends its audit checkpoints. */
import assert from 'node:assert/strict'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { parseCheckpointLine, type CheckpointLine } from '../../src/audit/checkpoint-line.ts'
import { startHostedVault } from '../kit/hosted-vault.ts'
import { runSymbolon, temporaryFolder, type RunningVault } from '../kit/running-vault.ts'

describe('SYMBOLON_AUDIT_CHECKPOINT_FILE', { concurrency: 2 }, () => {
  test('gets a line per checkpoint, as the log does, and is created anew when it was moved', async (t) => {
    const { folder, file, variables } = stage(t)
    const vault = await startHostedVault(folder, variables)
    t.after(() => vault.stop('SIGKILL'))
    const read = reader(vault)
    const last = await numberIn(file, 3)
    assert.equal(statSync(file).mode & 0o777, 0o600)
    await read()
    assert.ok((await numberIn(file, last + 1)) > last)
    renameSync(file, `${file}.1`)
    await read()
    const newest = await numberIn(file, last + 2)
    assert.ok(checkpointsIn(readFileSync(`${file}.1`, 'utf8')).every((it) => it.number < newest))
    assert.equal((await vault.stop()).status, 0)
    const written = [`${file}.1`, file].flatMap((it) => checkpointsIn(readFileSync(it, 'utf8')))
    // On a slow disk, newer checkpoints replace those that wait to be written.
    const logged = checkpointsIn(vault.printed())
    for (const it of written) assert.ok(logged.some((other) => isDeepStrictEqual(it, other)))
    assert.equal(written.at(-1)?.number, logged.at(-1)?.number)
    assert.equal((await verify(folder, `${file}.1`, file)).status, 0)
  })

  test('may fail while it serves: the log says so once, and the newest checkpoint is written later', async (t) => {
    const { folder, file, variables } = stage(t)
    const vault = await startHostedVault(folder, variables)
    t.after(() => vault.stop('SIGKILL'))
    const read = reader(vault)
    const last = await numberIn(file, 3)
    renameSync(file, `${file}.1`)
    mkdirSync(file)
    for (let n = 1; n <= 2; n++) {
      await read()
      await until(() => newestIn(vault.printed()) >= last + n)
    }
    await until(() => vault.printed().includes('"event":"audit_checkpoint_file_failed"'))
    rmdirSync(file)
    assert.ok((await numberIn(file, last + 2)) >= last + 2)
    await until(() => vault.printed().includes('"event":"audit_checkpoint_file_works"'))
    await vault.stop()
    assert.equal(vault.printed().split('"audit_checkpoint_file_failed"').length, 2)
    assert.equal((await verify(folder, `${file}.1`, file)).status, 0)
  })

  test('goes on after a kill, with the checkpoint that the killed service may have kept to itself', async (t) => {
    const { folder, file, variables } = stage(t)
    const killed = await startHostedVault(folder, variables)
    await reader(killed)()
    await numberIn(file, 4)
    await killed.stop('SIGKILL')
    const whole = readFileSync(file, 'utf8')
    // Of the last line, which a power cut ended early, and none of the others.
    writeFileSync(file, whole.slice(0, -40))
    const vault = await startHostedVault(folder, variables)
    await numberIn(file, newestIn(whole))
    await vault.stop()
    const { status, out } = await verify(folder, file)
    assert.equal(status, 0, out)
    assert.match(out, /^Not compared: 1 line of a checkpoint that cannot be read/m)
  })

  test('has the checkpoint of a tenant that a command made, before any service has run', async (t) => {
    const { folder, file, variables } = stage(t)
    const { status } = await runSymbolon(['init', '--data-dir', folder], variables)
    assert.equal(status, 0)
    assert.deepEqual(
      checkpointsIn(readFileSync(file, 'utf8')).map((it) => it.number),
      [3],
    )
  })

  const unusable: [name: string, make: (file: string) => void, says: RegExp][] = [
    ['a folder', (it) => mkdirSync(it), /which is a folder/],
    ['a symbolic link', (it) => symlinkSync('/dev/null', it), /which is a symbolic link/],
    [
      'a file that everyone may write to',
      (it) => {
        writeFileSync(it, '')
        chmodSync(it, 0o666)
      },
      /which every user of the machine may write to/,
    ],
    ['another file', (it) => writeFileSync(it, 'hello'), /which holds something else than lines/],
    ['in a folder that does not exist', (it) => rmdirSync(dirname(it)), /its folder does not/],
  ]
  for (const [name, make, says] of unusable) {
    test(`stops the start if it is ${name}, and creates no vault`, async (t) => {
      const { folder, file, variables } = stage(t)
      make(file)
      await refuses(folder, variables, says)
      assert.equal(existsSync(folder), false)
    })
  }

  test('is not created by a start that may not create a vault and finds none', async (t) => {
    const { folder, file, variables } = stage(t)
    const strict = { ...variables, SYMBOLON_NO_CREATE: 'on' }
    const { status, err } = await runSymbolon(['serve', '--data-dir', folder], strict)
    assert.deepEqual([status, /SYMBOLON_NO_CREATE/.test(err)], [1, true], err)
    assert.equal(existsSync(file), false)
    assert.equal((await runSymbolon(['init', '--data-dir', folder])).status, 0)
    rmdirSync(dirname(file))
    const refused = await runSymbolon(['serve', '--data-dir', folder], strict)
    assert.deepEqual([refused.status, /its folder does not exist/.test(refused.err)], [1, true])
  })

  test('stops the start if it is in the data folder, by whatever path, or relative', async (t) => {
    const { folder, file, variables } = stage(t)
    const link = join(dirname(file), 'link')
    symlinkSync(dirname(folder), link)
    for (const path of [join(folder, 'checkpoints'), join(link, 'data', 'checkpoints')]) {
      const inside = { ...variables, SYMBOLON_AUDIT_CHECKPOINT_FILE: path }
      await refuses(folder, inside, /which is in the data folder/)
    }
    const relative = { ...variables, SYMBOLON_AUDIT_CHECKPOINT_FILE: 'checkpoints' }
    await refuses(folder, relative, /must be unset or an absolute path/)
    assert.equal(existsSync(folder), false)
  })
})

async function refuses(
  folder: string,
  variables: Record<string, string>,
  says: RegExp,
): Promise<void> {
  for (const command of ['serve', 'init']) {
    const { status, out, err } = await runSymbolon([command, '--data-dir', folder], variables)
    assert.deepEqual([status, out], [1, ''])
    assert.match(err, /^symbolon \w+: SYMBOLON_AUDIT_CHECKPOINT_FILE is '[^\n]+\n$/)
    assert.match(err, says)
  }
}

function stage(t: TestContext) {
  const home = temporaryFolder(t)
  const [folder, file] = [join(home, 'data'), join(home, 'elsewhere', 'checkpoints')]
  mkdirSync(dirname(file))
  return { folder, file, variables: { SYMBOLON_AUDIT_CHECKPOINT_FILE: file } }
}

async function verify(folder: string, ...files: string[]) {
  return await runSymbolon(['audit', 'verify', '--data-dir', folder, '--against', ...files])
}

/** Returns a function that sends a request, which is an audit event. */
function reader(vault: RunningVault): () => Promise<void> {
  const key = /api_key\s+(\S+)/.exec(vault.greeting)![1]!
  return async () => {
    const reply = await fetch(`${vault.url}/applications`, { headers: { 'bt-api-key': key } })
    assert.equal(reply.status, 200)
  }
}

function checkpointsIn(text: string): CheckpointLine[] {
  return text
    .split('\n')
    .map(parseCheckpointLine)
    .filter((it) => it !== null && it !== 'unreadable')
}

function newestIn(text: string): number {
  return Math.max(0, ...checkpointsIn(text).map((it) => it.number))
}

/** Waits until the file has a checkpoint of an event with at least this number, and returns the number. */
async function numberIn(file: string, number: number): Promise<number> {
  const newest = (): number => (existsSync(file) ? newestIn(readFileSync(file, 'utf8')) : 0)
  await until(() => newest() >= number)
  return newest()
}

/** However long that takes on this machine. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await sleep(20)
}
