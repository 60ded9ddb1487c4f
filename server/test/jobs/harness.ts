/**
 * Kills the program repeatedly while it runs jobs and delivers their results, and checks the deliveries receivers saw
 * against the responses callers got.
 */
import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startVault, type RunningVault } from '../kit/running-vault.ts'
import { AUTHORITY_FILE } from '../kit/test-destination.ts'
import { diceOf, type Dice } from '../../crash/dice.ts'
import { Callers } from './callers.ts'
import { CallbackReceiver } from './receiver.ts'
import { judge, type Judgement } from './judge.ts'

export const JOB_WEAKNESSES = ['rerun', 'forgetful'] as const
/** Defect injected on purpose: every job may run again, or the jobs in progress are deleted from the file. */
export type JobWeakness = (typeof JOB_WEAKNESSES)[number]

export interface JobHarnessOptions {
  /** Empty; holds the vault. */
  readonly folder: string
  readonly kills: number
  /** Approximate number of jobs per life of a vault: all must run in the end, and a slow machine lags. */
  readonly lifeJobsMax: number
  readonly seed: number
  readonly weakness: JobWeakness | null
  /** Whether the load so far is enough to draw a conclusion from; otherwise the program is killed more often than `kills`. */
  readonly enough?: (soFar: JobsSoFar) => boolean
  readonly onKill: (kill: number, accepted: number) => void
}

export interface JobsSoFar {
  readonly accepted: number
  /** Jobs that the weakness `forgetful` has deleted before anything could be delivered: each is lost. */
  readonly forgotten: number
}

export interface JobResult extends Judgement {
  readonly kills: number
  readonly seconds: number
}

export async function runJobs(options: JobHarnessOptions): Promise<JobResult> {
  const receiver = new CallbackReceiver(options.seed)
  try {
    return await new JobHarness(options, receiver, await receiver.listen()).run()
  } finally {
    receiver.close()
  }
}

class JobHarness {
  readonly #options: JobHarnessOptions
  readonly #receiver: CallbackReceiver
  readonly #port: number
  readonly #dice: Dice
  readonly #callers: Callers
  #forgotten = 0

  constructor(options: JobHarnessOptions, receiver: CallbackReceiver, port: number) {
    this.#options = options
    this.#receiver = receiver
    this.#port = port
    this.#dice = diceOf(options.seed, 0)
    this.#callers = new Callers(this.#dice, port, options.weakness === 'rerun')
  }

  async run(): Promise<JobResult> {
    const begun = performance.now()
    const { kills, lifeJobsMax, onKill } = this.#options
    const callers = this.#callers
    let vault = await this.#start()
    await callers.setUp(vault.url, managementKeyIn(vault))
    let kill = 0
    while (kill < kills || !this.#isEnough()) {
      kill++
      const { url } = vault
      let more = lifeJobsMax
      const load = callers.load(
        () => url,
        (answered) => answered && more-- > 0,
      )
      await untilKill(this.#receiver, this.#dice)
      await vault.stop('SIGKILL')
      this.#receiver.kill = kill
      await load
      if (this.#options.weakness === 'forgetful') this.#forget()
      onKill(kill, callers.accepted.size)
      vault = await this.#start()
    }
    try {
      await callers.askAgain(vault.url)
      await this.#quiet()
      const seen = await seenBy(callers, this.#receiver, vault.url)
      const seconds = Math.round((performance.now() - begun) / 1000)
      return { kills: kill, seconds, ...judge(seen) }
    } finally {
      await vault.stop()
    }
  }

  async #start(): Promise<RunningVault> {
    const settings = { SYMBOLON_REACTOR_LEVEL: 'jail', ...settingsFor(this.#port) }
    return await startVault(join(this.#options.folder, 'vault'), settings)
  }

  /** Waits until the file has no job that is still to be run or delivered. */
  async #quiet(): Promise<void> {
    const db = new DatabaseSync(this.#database, { readOnly: true })
    const left = db.prepare("SELECT 1 FROM jobs WHERE stage IN ('run', 'deliver') LIMIT 1")
    await until(() => left.get() === undefined)
    db.close()
  }

  get #database(): string {
    return join(this.#options.folder, 'vault', 'symbolon.db')
  }

  #forget(): void {
    const db = new DatabaseSync(this.#database)
    const sql = "DELETE FROM jobs WHERE stage IN ('run', 'deliver') RETURNING stage"
    this.#forgotten += db.prepare(sql).all().filter(isToRun).length
    db.close()
  }

  #isEnough(): boolean {
    const soFar = { accepted: this.#callers.accepted.size, forgotten: this.#forgotten }
    return this.#options.enough?.(soFar) ?? true
  }
}

/** Whether the code of the job is still to be run, so that nothing of it can have been delivered. */
export function isToRun(row: { readonly stage?: unknown }): boolean {
  return row.stage === 'run'
}

/** Returns the management key that a vault prints on its first start. */
export function managementKeyIn({ greeting }: Pick<RunningVault, 'greeting'>): string {
  return /api_key\s+(key_\w+)/.exec(greeting)![1]!
}

/** Settings that let a vault's code and callbacks reach the receiver at `port`. */
export function settingsFor(port: number): Record<string, string> {
  return {
    SYMBOLON_EGRESS_ALLOW: `localhost:${port}`,
    SYMBOLON_EXTRA_CA_FILE: AUTHORITY_FILE,
    SYMBOLON_LOG_LEVEL: 'error',
  }
}

/** Resolves a little after so many runs and callbacks were seen: whatever the machine has to do, it falls among them. */
export async function untilKill(receiver: CallbackReceiver, dice: Dice): Promise<void> {
  const events = Math.floor(dice() * KILL_EVENTS_MAX)
  await Promise.race([receiver.after(events), sleep(KILL_MS_MAX)])
  await sleep(dice() * KILL_PAUSE_MS_MAX)
}

/** Resolves when it is so, or after a long time. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (let ms = 0; ms < QUIET_MS_MAX && !(await isSo()); ms += LOOK_MS) await sleep(LOOK_MS)
}

/** Collects the evidence to judge, once the vault at `url` is idle. */
export async function seenBy(callers: Callers, receiver: CallbackReceiver, url: string) {
  return {
    accepted: callers.accepted,
    received: receiver.received,
    effects: receiver.effects,
    deadLetters: await callers.deadLetters(url),
    tokens: await callers.tokens(url),
    secret: await callers.secret(url),
  }
}

const KILL_EVENTS_MAX = 12
const KILL_PAUSE_MS_MAX = 60
const KILL_MS_MAX = 5_000
const LOOK_MS = 100
/** However busy the machine is. */
const QUIET_MS_MAX = 10 * 60_000
