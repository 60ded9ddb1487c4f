/**
 * Backs a vault up while callers write to it, restores the backup, and reads back everything acknowledged before
 * the backup began; throws when any of it is missing.
 */
import assert from 'node:assert/strict'
import { copyFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { makeKeys } from '../../crash/vault-client.ts'
import { runProgram } from '../kit/running-vault.ts'
import { RotatingVault } from '../rotation/rotating-vault.ts'

export interface BackupRun {
  readonly folder: string
  readonly tokens: number
  readonly backups: number
  readonly callers: number
  readonly report: (line: string) => void
}

export interface BackupTally {
  /** Tokens acknowledged before the last backup began and read from the restored vault. */
  readonly read: number
  /** Number of tokens in the restored vault, all of them opened: at least as many as were acknowledged. */
  readonly opened: number
  readonly bytes: number
  readonly backupMs: number
  readonly restoreMs: number
}

export async function backUpUnderLoad(run: BackupRun): Promise<BackupTally[]> {
  const { folder, tokens, report } = run
  const data = path.join(folder, 'data')
  const vault = new RotatingVault({ folder: data, database: null, tokens, retirementMs: 1000 })
  const { port, key, samples } = await vault.ready()
  report(`${tokens} tokens are there`)
  const keys = await makeKeys(port!, key!)
  const url = `http://127.0.0.1:${port}`
  const acked = new Map(samples!.ids.map((id, n) => [id, samples!.values[n]!]))
  const state = { over: false }
  const writing = Promise.all(
    Array.from({ length: run.callers }, async (_, caller) => {
      for (let n = 0; !state.over; n++) {
        const value = `by ${caller}, ${n}`
        acked.set(await make(url, keys.write, value), value)
        await sleep(WRITES_EVERY_MS)
      }
    }),
  )
  try {
    const secret = path.join(folder, 'backup.key')
    const made = await symbolon(['backup', 'key', '--to', secret])
    const tallies: BackupTally[] = []
    for (let n = 0; n < run.backups; n++) {
      const before = new Map(acked)
      const file = path.join(folder, `backup-${n}.age`)
      const began = performance.now()
      const said = await symbolon([
        'backup',
        '--data-dir',
        data,
        '--to',
        file,
        '--recipient',
        made.trim(),
      ])
      const backupMs = Math.round(performance.now() - began)
      const bytes = Number(/: (\d+) bytes/.exec(said)![1])
      const restored = path.join(folder, `restored-${n}`)
      const { restoreMs, opened } = await restoreTo(restored, file)
      const acknowledged = tokens + before.size - samples!.ids.length
      assert.ok(opened >= acknowledged, `${opened} tokens of ${acknowledged}`)
      await readAll(restored, keys.read, before)
      tallies.push({ read: before.size, opened, bytes, backupMs, restoreMs })
      report(JSON.stringify(tallies.at(-1)))
    }
    return tallies
  } finally {
    state.over = true
    await writing
    await vault.kill()
  }

  async function restoreTo(
    restored: string,
    file: string,
  ): Promise<{ restoreMs: number; opened: number }> {
    const root = path.join(folder, 'root.key')
    copyFileSync(path.join(data, 'root.key'), root)
    const identity = path.join(folder, 'backup.key')
    const began = performance.now()
    const where = ['--data-dir', restored, '--root-key-file', root]
    const said = await symbolon([
      'restore',
      ...where,
      '--from',
      file,
      '--identity',
      identity,
      '--all',
    ])
    const restoreMs = Math.round(performance.now() - began)
    copyFileSync(root, path.join(restored, 'root.key'))
    const [, found, values] = /, (\d+) tokens, (\d+) values decrypted/.exec(said)!
    assert.ok(Number(values) >= Number(found), said)
    return { restoreMs, opened: Number(found) }
  }
}

/** Starts a service on the restored vault, and reads from it with keys made before the backup. */
async function readAll(
  folder: string,
  key: string,
  values: ReadonlyMap<string, string>,
): Promise<void> {
  const vault = new RotatingVault({ folder, database: null, tokens: 0, retirementMs: 1000 })
  try {
    const { port } = await vault.ready()
    const entries = values.entries()
    const read = async (): Promise<void> => {
      for (const [id, value] of entries) {
        const reply = await fetch(`http://127.0.0.1:${port}/tokens/${id}`, {
          headers: { 'BT-API-KEY': key },
        })
        assert.equal(reply.status, 200, `token ${id} is not there`)
        assert.equal(((await reply.json()) as { data: string }).data, value)
      }
    }
    await Promise.all(Array.from({ length: READERS }, read))
  } finally {
    await vault.kill()
  }
}

async function make(url: string, key: string, value: string): Promise<string> {
  const reply = await fetch(`${url}/tokens`, {
    method: 'POST',
    headers: { 'BT-API-KEY': key, 'content-type': 'application/json' },
    body: JSON.stringify({ type: 'token', data: value }),
  })
  assert.equal(reply.status, 201)
  return ((await reply.json()) as { id: string }).id
}

async function symbolon(args: readonly string[]): Promise<string> {
  const { status, out, err } = await runProgram(args)
  assert.equal(status, 0, err)
  return out
}

const WRITES_EVERY_MS = 20
const READERS = 8
