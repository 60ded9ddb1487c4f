/**
 * Rotates the data key of a tenant while callers read, make and change tokens and servers are killed
 * repeatedly; throws when a caller fails to read an acknowledged token, or data is left under the older key.
 */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { makeKeys, type Keys } from '../../crash/vault-client.ts'
import { diceOf, type Dice } from '../../crash/dice.ts'
import { RotatingVault } from './rotating-vault.ts'
import { assertNothingLeft } from './nothing-left.ts'
import { ask, sealOneOfEach, send } from './one-of-each.ts'
import type { RotatingServerOptions } from './server.ts'

export interface RotationRun extends RotatingServerOptions {
  /** With more than one, a database. */
  readonly servers: number
  readonly kills: number
  readonly seed: number
  readonly callers: number
  /** A caller's pause between two requests. */
  readonly pauseMs: number
  /** Milliseconds of load before the first rotation, to compare with. */
  readonly calmMs: number
  readonly report: (line: string) => void
}

export interface RotationTally {
  rotations: number
  kills: number
  reads: number
  written: number
  /** Requests that were cut off by a kill. */
  cutOff: number
  /** Writes that were sealed under a key retired before they were committed: answered 503, and nothing is stored. */
  refused: number
  readonly calm: number[]
  readonly busy: number[]
}

interface RotationStage {
  readonly vaults: RotatingVault[]
  over: boolean
  readonly keys: Keys
  /** Values known to be stored, by id. */
  readonly values: Map<string, string>
  readonly ids: string[]
  readonly tally: RotationTally
}

export async function rotateUnderLoad(run: RotationRun): Promise<RotationTally> {
  const first = new RotatingVault(run)
  const vaults = [first]
  const { port, key, samples } = await first.ready()
  run.report(`${run.tokens} tokens are there`)
  const tally = {
    rotations: 0,
    kills: 0,
    reads: 0,
    written: 0,
    cutOff: 0,
    refused: 0,
    calm: [],
    busy: [],
  }
  const values = new Map(samples!.ids.map((id, n) => [id, samples!.values[n]!]))
  const keys = await makeKeys(port!, key!)
  const stage: RotationStage = { vaults, over: false, keys, values, ids: [...samples!.ids], tally }
  await sealOneOfEach(first.url, keys, key!)
  while (vaults.length < run.servers) vaults.push(await started(run))

  const callers = Promise.all(
    Array.from({ length: run.callers }, (_, n) => call(stage, run, diceOf(run.seed, n))),
  )
  // A failed caller ends the others as well; its error is reported then.
  callers.catch(() => (stage.over = true))
  try {
    await sleep(run.calmMs)
    while (!stage.over && (tally.reads === 0 || tally.written === 0)) await sleep(10)
    await rotateAndKill(stage, run, diceOf(run.seed, 1_000_000))
    stage.over = true
    await callers
    for (const vault of vaults) {
      for (const [id, value] of stage.values) await readBack(stage, vault.url, id, value)
    }
  } finally {
    stage.over = true
    await callers.catch(() => {})
    await Promise.all(vaults.map((it) => it.kill()))
  }
  await assertNothingLeft(run)
  return tally
}

/** Rotates the key, repeatedly if need be, until the requested number of kills is reached and no server is rotating. */
async function rotateAndKill(stage: RotationStage, run: RotationRun, dice: Dice): Promise<void> {
  const { vaults, tally } = stage
  const isRunning = (): boolean => vaults.some((it) => it.running > 0)
  const anyone = (): number => Math.floor(dice() * vaults.length)
  vaults[anyone()]!.rotate()
  while (!stage.over) {
    if (tally.kills < run.kills) await killSometime()
    else await sleep(20)
    if (isRunning()) continue
    tally.rotations += 1
    run.report(`rotated, after ${tally.kills} kills`)
    if (tally.kills >= run.kills) return
    vaults[anyone()]!.rotate()
  }

  async function killSometime(): Promise<void> {
    const until = performance.now() + dice() * Math.max(500, run.tokens / 200)
    while (performance.now() < until && isRunning()) await sleep(5)
    if (!isRunning()) return
    const n = anyone()
    await vaults[n]!.kill()
    tally.kills += 1
    run.report(`killed, ${vaults[n]!.left} left`)
    vaults[n] = await started(run)
  }
}

async function started(run: RotationRun): Promise<RotatingVault> {
  const vault = new RotatingVault(run)
  await vault.ready()
  return vault
}

/** Reads, and now and then makes or changes, until it is over. */
async function call(stage: RotationStage, { pauseMs }: RotationRun, dice: Dice): Promise<void> {
  const { tally, keys, vaults } = stage
  for (let n = 0; !stage.over; n++) {
    if (pauseMs > 0) await sleep(pauseMs)
    const vault = vaults[Math.floor(dice() * vaults.length)]!
    const id = stage.ids[Math.floor(dice() * stage.ids.length)]!
    const busy = vaults.some((it) => it.running > 0)
    const began = performance.now()
    try {
      if (n % 10 < 8) {
        await readBack(stage, vault.url, id, stage.values.get(id)!)
        tally.reads += 1
        ;(busy ? tally.busy : tally.calm).push(performance.now() - began)
      } else {
        const value = `made ${dice()}`
        const token = { type: 'token', data: value }
        const made = await write(vault.url, 'POST', '/tokens', keys.write, token)
        const changed = { data: `${value}, and changed` }
        // Changed before it is listed for reading: a concurrent reader could see either value.
        if (n % 10 === 8)
          await write(vault.url, 'PATCH', `/tokens/${String(made['id'])}`, keys.write, changed)
        stage.values.set(String(made['id']), n % 10 === 8 ? changed.data : value)
        stage.ids.push(String(made['id']))
        tally.written += 1
      }
    } catch (error) {
      // On a busy machine a write may take longer than the short time that tests allow.
      if (error instanceof Unavailable) {
        tally.refused += 1
        continue
      }
      if (error instanceof assert.AssertionError || !vault.killed) throw error
      tally.cutOff += 1
      while (vaults.includes(vault) && !stage.over) await sleep(10)
    }
  }
}

class Unavailable extends Error {}

/** Like ask(), but rejects with Unavailable if nothing was changed because the key was retired. */
async function write(...asked: Parameters<typeof send>): ReturnType<typeof ask> {
  const { status, text } = await send(...asked)
  if (status === 503 && text.includes('store_unavailable')) throw new Unavailable()
  const [, method, path] = asked
  assert.ok(status < 300, `${method} ${path}: ${status} ${text}`)
  return JSON.parse(text) as Record<string, unknown>
}

async function readBack(
  stage: RotationStage,
  url: string,
  id: string,
  value: string,
): Promise<void> {
  const found = await ask(url, 'GET', `/tokens/${id}`, stage.keys.read)
  assert.equal(found['data'], value)
}
