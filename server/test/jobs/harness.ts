/**
 * Kills the program again and again while it runs jobs and delivers what came of them, and holds what receivers saw to
 * what callers were told.
 */
import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { JsonObject } from '../../src/base/json.ts'
import { startVault, type RunningVault } from '../kit/running-vault.ts'
import { diceOf, type Dice } from '../../crash/dice.ts'
import { Receiver } from './receiver.ts'
import { judge, type Accepted, type Judgement } from './judge.ts'

export const JOB_WEAKNESSES = ['rerun', 'forgetful'] as const
/** What is done wrong on purpose: every job is let be run again, or those under way are taken out of the file. */
export type JobWeakness = (typeof JOB_WEAKNESSES)[number]

export interface JobHarnessOptions {
  /** Empty; holds the vault. */
  readonly folder: string
  readonly kills: number
  readonly seed: number
  readonly weakness: JobWeakness | null
  readonly onKill: (kill: number, accepted: number) => void
}

export interface JobResult extends Judgement {
  readonly kills: number
  readonly seconds: number
}

const AUTHORITY = fileURLToPath(new URL('../kit/certificates/authority.pem', import.meta.url))

export async function runJobs(options: JobHarnessOptions): Promise<JobResult> {
  const receiver = new Receiver(options.seed)
  try {
    return await new JobHarness(options, receiver, await receiver.listen()).run()
  } finally {
    receiver.close()
  }
}

class JobHarness {
  readonly #options: JobHarnessOptions
  readonly #receiver: Receiver
  readonly #port: number
  readonly #dice: Dice
  readonly #accepted = new Map<number, Accepted>()
  /** Jobs whose callers were not told: they ask again, with the same key. */
  readonly #again: number[] = []
  #next = 1
  #keys = { management: '', caller: '' }
  #reactor = ''

  constructor(options: JobHarnessOptions, receiver: Receiver, port: number) {
    this.#options = options
    this.#receiver = receiver
    this.#port = port
    this.#dice = diceOf(options.seed, 0)
  }

  async run(): Promise<JobResult> {
    const begun = performance.now()
    const { kills, onKill } = this.#options
    await this.#setUp()
    for (let kill = 1; kill <= kills; kill++) {
      const vault = await this.#start()
      const load = this.#load(vault)
      const events = Math.floor(this.#dice() * KILL_EVENTS_MAX)
      await Promise.race([this.#receiver.after(events), sleep(KILL_MS_MAX)])
      await sleep(this.#dice() * KILL_PAUSE_MS_MAX)
      await vault.stop('SIGKILL')
      this.#receiver.kill = kill
      await load
      if (this.#options.weakness === 'forgetful') this.#forget()
      onKill(kill, this.#accepted.size)
    }
    const vault = await this.#start()
    try {
      while (this.#again.length > 0) await this.#invoke(vault, this.#again.shift()!)
      const secrets = await this.#manage(vault, 'GET', '/callbacks/secret')
      await this.#quiet()
      const seen = {
        accepted: this.#accepted,
        received: this.#receiver.received,
        effects: this.#receiver.effects,
        dead: await this.#dead(vault),
        tokens: await this.#tokens(vault),
        secret: (secrets['secrets'] as { secret: string }[])[0]!.secret,
      }
      const seconds = Math.round((performance.now() - begun) / 1000)
      return { kills, seconds, ...judge(seen) }
    } finally {
      await vault.stop()
    }
  }

  async #setUp(): Promise<void> {
    const vault = await this.#start()
    const management = /api_key\s+(key_\w+)/.exec(vault.greeting)![1]!
    this.#keys = { management, caller: '' }
    const application = await this.#manage(vault, 'POST', '/applications', {
      name: 'caller',
      type: 'private',
      permissions: ['token:create', 'token:use', 'token:read'],
    })
    const reactor = await this.#manage(vault, 'POST', '/reactors', {
      name: 'effect',
      configuration: {},
      code: `module.exports = async ({ args: { n } }) => {
        await fetch('https://localhost:${this.#port}/effect/' + n, { method: 'POST' })
        return { raw: { n }, tokenize: { type: 'token', data: 'made by ' + n } }
      }`,
    })
    this.#keys = { management, caller: application['key'] as string }
    this.#reactor = reactor['id'] as string
    await vault.stop()
  }

  async #start(): Promise<RunningVault> {
    return await startVault(join(this.#options.folder, 'vault'), {
      SYMBOLON_EGRESS_ALLOW: `localhost:${this.#port}`,
      SYMBOLON_EXTRA_CA_FILE: AUTHORITY,
      SYMBOLON_LOG_LEVEL: 'error',
    })
  }

  /** Callers that invoke one job after the other until the server is gone. */
  async #load(vault: RunningVault): Promise<void> {
    const caller = async (): Promise<void> => {
      for (let alive = true; alive;) {
        const n = this.#again.shift() ?? this.#next++
        alive = await this.#invoke(vault, n)
        await sleep(this.#dice() * 20)
      }
    }
    await Promise.all(Array.from({ length: CALLERS }, caller))
  }

  /** Returns whether the server was there; what it did not answer is asked again. */
  async #invoke({ url }: RunningVault, n: number): Promise<boolean> {
    const rerun = n % RERUN_ONE_IN === 0
    try {
      const reply = await fetch(`${url}/reactors/${this.#reactor}/react`, {
        method: 'POST',
        headers: {
          'BT-API-KEY': this.#keys.caller,
          'BT-IDEMPOTENCY-KEY': `job ${n}`,
          'Content-Type': 'application/json',
        },
        body: JSON.stringify({
          args: { n },
          callback_url: `https://localhost:${this.#port}/callback/${n}`,
          rerun_interrupted: rerun || this.#options.weakness === 'rerun',
        }),
      })
      if (reply.status === 202) {
        const id = reply.headers.get('bt-reactor-request-id')!
        this.#accepted.set(n, { id, rerun })
        return true
      }
      await reply.text()
      this.#again.push(n)
      return true
    } catch {
      this.#again.push(n)
      return false
    }
  }

  async #manage(vault: RunningVault, method: string, path: string, body?: JsonObject) {
    return await this.#ask(vault, this.#keys.management, method, path, body)
  }

  async #ask({ url }: RunningVault, key: string, method: string, path: string, body?: JsonObject) {
    const reply = await fetch(url + path, {
      method,
      headers: {
        'BT-API-KEY': key,
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    if (!reply.ok) throw new Error(`${method} ${path} is ${reply.status}: ${await reply.text()}`)
    return (await reply.json()) as JsonObject
  }

  /** Waits until the file has no job that is still to be run or delivered. */
  async #quiet(): Promise<void> {
    const db = new DatabaseSync(this.#database, { readOnly: true })
    const left = db.prepare("SELECT 1 FROM jobs WHERE stage IN ('run', 'deliver') LIMIT 1")
    for (let ms = 0; ms < QUIET_MS_MAX && left.get() !== undefined; ms += LOOK_MS) {
      await sleep(LOOK_MS)
    }
    db.close()
  }

  get #database(): string {
    return join(this.#options.folder, 'vault', 'symbolon.db')
  }

  async #dead(vault: RunningVault): Promise<Set<string>> {
    const ids = new Set<string>()
    for (let start: string | undefined = ''; start !== undefined;) {
      const page = await this.#manage(vault, 'GET', `/callbacks?size=100&start=${start}`)
      for (const { id } of page['data'] as { id: string }[]) ids.add(id)
      start = (page['pagination'] as { next?: string }).next
    }
    return ids
  }

  /** How many tokens there are. */
  async #tokens(vault: RunningVault): Promise<number> {
    const page = await this.#ask(vault, this.#keys.caller, 'GET', '/tokens?size=1')
    return (page['pagination'] as { total_items: number }).total_items
  }

  #forget(): void {
    const db = new DatabaseSync(this.#database)
    db.exec("DELETE FROM jobs WHERE stage IN ('run', 'deliver')")
    db.close()
  }
}

const CALLERS = 6
const RERUN_ONE_IN = 5
/** A kill comes a little after so many runs and callbacks were seen: whatever the machine has to do, it falls among them. */
const KILL_EVENTS_MAX = 12
const KILL_PAUSE_MS_MAX = 60
const KILL_MS_MAX = 5_000
const LOOK_MS = 100
/** However busy the machine is. */
const QUIET_MS_MAX = 10 * 60_000
