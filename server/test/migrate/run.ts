/**
 * Migrates a vault with one of everything in it to PostgreSQL, kills the command repeatedly meanwhile, and
 * compares both: stored data, decrypted data, and behavior. Throws at the first difference.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { diceOf, type Dice } from '../../crash/dice.ts'
import { auditCheckpointer } from '../../src/audit/checkpoint.ts'
import { bareEnvironment } from '../kit/environment.ts'
import { meddlingProxy, type MeddlingProxy } from '../kit/postgres/meddling-proxy.ts'
import { runProgram } from '../kit/running-vault.ts'
import { behaviour } from './behaviour.ts'
import { compareStores, type ComparedStores } from './compare-stores.ts'
import { furnish, type Furnished } from './furnish.ts'
import { serveHere } from './service.ts'

export interface MoveRun {
  readonly folder: string
  /** The address of a database with nothing in it. */
  readonly database: string
  readonly tokens: number
  readonly interruptions: number
  readonly seed: number
  readonly report: (line: string) => void
}

export interface MoveTally extends ComparedStores {
  readonly kills: number
  /** All runs of the command together. */
  readonly moveMs: number
  /** The most that the command took, in MiB. */
  readonly memory: number
  readonly answers: number
}

const MAIN = path.join(import.meta.dirname, '../../bin/symbolon.cjs')
const MOVE = ['migrate', '--from', 'sqlite', '--to', 'postgres']

export async function moveInterrupted(run: MoveRun): Promise<MoveTally> {
  const { folder, database, tokens, report } = run
  const source = path.join(folder, 'source')
  const made = await build(source, tokens)
  report(`${tokens} tokens are there`)

  const began = performance.now()
  const { kills, memory } = await moveKilling(run, source)
  const moveMs = Math.round(performance.now() - began)
  report(`moved in ${moveMs} ms, killed ${kills} times`)

  const variables = { SYMBOLON_DATA_DIR: source, SYMBOLON_DATABASE_URL: database }
  const verified = await runProgram(['audit', 'verify'], variables)
  assert.equal(verified.status, 0, verified.out + verified.err)
  assert.match(verified.out, /^tenant \S+: intact, events 1 to (\d+), checkpoint at \1,/m)

  const copy = path.join(folder, 'copy')
  cpSync(source, copy, { recursive: true })
  rmSync(path.join(copy, 'symbolon.moved'))
  const [old, now] = [await serveHere(copy), await serveHere(source, database)]
  try {
    const compared = await compareStores(old.world, now.world)
    report(`compared: ${JSON.stringify(compared)}`)
    const [before, after] = [await behaviour(old.url, made), await behaviour(now.url, made)]
    for (const [n, it] of before.entries()) assert.deepEqual(after[n], it)
    assert.equal(after.length, before.length)
    return { kills, moveMs, memory, answers: after.length, ...compared }
  } finally {
    await Promise.all([old.close(), now.close()])
  }
}

async function build(source: string, tokens: number): Promise<Furnished> {
  const service = await serveHere(source)
  try {
    const made = await furnish(service, tokens)
    await auditCheckpointer(service.world)()
    return made
  } finally {
    await service.close()
  }
}

/**
 * Runs the command until it ends by itself. When it has come to a place to be killed at, its next question to the
 * database is left unanswered, so that it cannot end before it is killed, however slowly this process runs.
 */
async function moveKilling(
  run: MoveRun,
  source: string,
): Promise<Pick<MoveTally, 'kills' | 'memory'>> {
  const proxy = await meddlingProxy(run.database)
  try {
    return await moveThrough(proxy, run, source)
  } finally {
    await proxy.close()
  }
}

async function moveThrough(
  proxy: MeddlingProxy,
  run: MoveRun,
  source: string,
): Promise<Pick<MoveTally, 'kills' | 'memory'>> {
  const dice = diceOf(run.seed, 0)
  const places = placesToKill(run, dice)
  let [lines, memory] = [0, 0]
  for (let kills = 0; ; kills++) {
    const until = places[kills] ?? Infinity
    proxy.decide = () => (lines >= until ? 'swallow' : 'pass')
    const child = spawn(process.execPath, [MAIN, ...MOVE], {
      env: {
        ...bareEnvironment(),
        SYMBOLON_DATA_DIR: source,
        SYMBOLON_DATABASE_URL: proxy.url,
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let last = ''
    createInterface(child.stdout).on('line', (line) => {
      last = line
      memory = Math.max(memory, memoryOf(child.pid!))
      if (++lines >= until) void sleep(dice() * DELAY_MS_MAX).then(() => child.kill('SIGKILL'))
    })
    const [status, signal] = (await once(child, 'close')) as [number | null, string | null]
    if (signal === null) {
      assert.equal(status, 0, last)
      return { kills, memory }
    }
    run.report(`killed after: ${last}`)
  }
}

/**
 * Counted in lines that the command prints, over all its runs: while it moves, and while it compares. After the last few
 * lines it asks the database nothing more.
 */
function placesToKill({ tokens, interruptions }: MoveRun, dice: Dice): number[] {
  const lines = 18 + 2 * Math.floor(tokens / 10_000)
  const step = lines / interruptions
  return Array.from({ length: interruptions }, (_, n) => 1 + Math.floor((n + dice()) * step))
}

const DELAY_MS_MAX = 5

/** The most that a process has taken so far, in MiB; 0 when it is gone. */
function memoryOf(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    return Math.round(Number(/^VmHWM:\s+(\d+)/m.exec(status)?.[1] ?? 0) / 1024)
  } catch {
    return 0
  }
}
