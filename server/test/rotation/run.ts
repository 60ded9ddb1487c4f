/**
 * Rotates the data key of a tenant while callers read, make and change tokens and the server is killed again and
 * again; throws when anybody fails to read what was acknowledged, or something is left under the older key.
 */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { makeKeys, type Keys } from '../../crash/vault-client.ts'
import { diceOf } from '../../crash/dice.ts'
import { RotatingVault } from './rotating-vault.ts'
import { assertNothingLeft } from './nothing-left.ts'
import { ask, sealOneOfEach } from './one-of-each.ts'

export interface RotationRun {
  readonly folder: string
  readonly tokens: number
  readonly kills: number
  readonly seed: number
  readonly callers: number
  readonly retirementMs: number
  /** Milliseconds of load before the first rotation, to compare with. */
  readonly calmMs: number
  readonly tell: (line: string) => void
}

export interface RotationTally {
  rotations: number
  kills: number
  reads: number
  written: number
  /** Requests that were cut off by a kill. */
  cutOff: number
  readonly calm: number[]
  readonly busy: number[]
}

interface Stage {
  vault: RotatingVault
  url: string
  over: boolean
  readonly keys: Keys
  /** What is known to be there, by id. */
  readonly values: Map<string, string>
  readonly ids: string[]
  readonly tally: RotationTally
}

export async function rotateUnderLoad(run: RotationRun): Promise<RotationTally> {
  const { folder, tokens, retirementMs, tell } = run
  const options = { folder, tokens, retirementMs }
  const vault = new RotatingVault(options)
  const { port, key, samples } = await vault.ready()
  tell(`${tokens} tokens are there`)
  const tally = { rotations: 0, kills: 0, reads: 0, written: 0, cutOff: 0, calm: [], busy: [] }
  const url = `http://127.0.0.1:${port}`
  const values = new Map(samples!.ids.map((id, n) => [id, samples!.values[n]!]))
  const keys = await makeKeys(port!, key!)
  const stage: Stage = { vault, url, over: false, keys, values, ids: [...samples!.ids], tally }
  await sealOneOfEach(url, keys, key!)

  const callers = Promise.all(
    Array.from({ length: run.callers }, (_, n) => call(stage, diceOf(run.seed, n))),
  )
  // Whoever fails has the rest end as well, and is heard then.
  callers.catch(() => (stage.over = true))
  try {
    await sleep(run.calmMs)
    const dice = diceOf(run.seed, 1_000_000)
    while (!stage.over && (tally.kills < run.kills || tally.rotations === 0)) {
      if (stage.vault.rotated || tally.rotations + tally.kills === 0) {
        stage.vault.rotated = false
        stage.vault.rotate()
      }
      if (tally.kills < run.kills) await killSometime()
      while (!stage.over && !stage.vault.rotated && tally.kills >= run.kills) await sleep(20)
      if (stage.vault.rotated) tally.rotations += 1
      if (stage.vault.rotated) tell(`rotated, after ${tally.kills} kills`)

      async function killSometime(): Promise<void> {
        const until = performance.now() + dice() * Math.max(500, tokens / 200)
        while (performance.now() < until && !stage.vault.rotated) await sleep(5)
        if (stage.vault.rotated) return
        await stage.vault.kill()
        tally.kills += 1
        tell(`killed, ${stage.vault.left} left`)
        const next = new RotatingVault(options)
        const { port } = await next.ready()
        ;[stage.vault, stage.url] = [next, `http://127.0.0.1:${port}`]
      }
    }
    stage.over = true
    await callers
    for (const [id, value] of stage.values) await readBack(stage, id, value)
  } finally {
    stage.over = true
    await callers.catch(() => {})
    await stage.vault.kill()
  }
  await assertNothingLeft(folder)
  return tally
}

/** Reads, and now and then makes or changes, until it is over. */
async function call(stage: Stage, dice: () => number): Promise<void> {
  const { tally, keys } = stage
  for (let n = 0; !stage.over; n++) {
    const { vault } = stage
    const id = stage.ids[Math.floor(dice() * stage.ids.length)]!
    const busy = vault.left < Infinity
    const began = performance.now()
    try {
      if (n % 10 < 8) {
        await readBack(stage, id, stage.values.get(id)!)
        tally.reads += 1
        ;(busy ? tally.busy : tally.calm).push(performance.now() - began)
      } else {
        const value = `made ${dice()}`
        const made = await ask(stage.url, 'POST', '/tokens', keys.write, {
          type: 'token',
          data: value,
        })
        const changed = { data: `${value}, and changed` }
        // Before it is asked for: whoever reads meanwhile may see either.
        if (n % 10 === 8)
          await ask(stage.url, 'PATCH', `/tokens/${String(made['id'])}`, keys.write, changed)
        stage.values.set(String(made['id']), n % 10 === 8 ? changed.data : value)
        stage.ids.push(String(made['id']))
        tally.written += 1
      }
    } catch (error) {
      if (error instanceof assert.AssertionError || !vault.killed) throw error
      tally.cutOff += 1
      while (stage.vault.killed) await sleep(10)
    }
  }
}

async function readBack(stage: Stage, id: string, value: string): Promise<void> {
  const found = await ask(stage.url, 'GET', `/tokens/${id}`, stage.keys.read)
  assert.equal(found['data'], value)
}
