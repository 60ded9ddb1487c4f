/**
 * Kills one of two servers on one PostgreSQL database repeatedly while both run jobs and deliver their results, and checks
 * the deliveries receivers saw against the responses callers got, from either server.
 */
import { copyFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { diceOf, type Dice } from '../../crash/dice.ts'
import { PostgresDatabase } from '../../crash/postgres-database.ts'
import { Callers } from '../jobs/callers.ts'
import {
  isToRun,
  managementKeyIn,
  seenBy,
  settingsFor,
  until,
  untilKill,
  type JobResult,
  type JobsSoFar,
  type JobWeakness,
} from '../jobs/harness.ts'
import { judge } from '../jobs/judge.ts'
import { CallbackReceiver } from '../jobs/receiver.ts'
import { startVault, type RunningVault } from '../kit/running-vault.ts'

export interface TwoServersOptions {
  /** Empty; holds a folder for each server. */
  readonly folder: string
  /** An empty database. */
  readonly database: string
  readonly kills: number
  /** After which there are no more kills, however many there were, if the load was `enough`. */
  readonly minutes: number
  /** Number of jobs after a kill, until the next one. */
  readonly lifeJobsMax: number
  readonly seed: number
  readonly weakness: JobWeakness | null
  /** Whether the load so far is enough to draw a conclusion from; otherwise there are more kills than `kills`. */
  readonly enough?: (soFar: JobsSoFar) => boolean
  /**
   * Whether to wait at the end until the claims of those that were killed are over, which takes up to four and a half
   * minutes; otherwise both servers are stopped, and the claims that are left end at once.
   */
  readonly patient: boolean
  readonly onKill: (kill: number, accepted: number) => void
}

export interface TwoServersResult extends JobResult {
  /** Claims that were left when nothing else was, almost all of those that were killed. */
  readonly leftClaims: number
}

export async function runTwoServers(options: TwoServersOptions): Promise<TwoServersResult> {
  const receiver = new CallbackReceiver(options.seed)
  const database = await PostgresDatabase.open(options.database)
  try {
    const port = await receiver.listen()
    return await new TwoServersHarness(options, receiver, port, database).run()
  } finally {
    await database.close()
    receiver.close()
  }
}

class TwoServersHarness {
  readonly #options: TwoServersOptions
  readonly #receiver: CallbackReceiver
  readonly #database: PostgresDatabase
  readonly #dice: Dice
  readonly #callers: Callers
  readonly #variables: Record<string, string>
  readonly #servers: RunningVault[] = []
  #turn = 0
  #forgotten = 0
  #loading = false
  #jobsLeft: number

  constructor(
    options: TwoServersOptions,
    receiver: CallbackReceiver,
    port: number,
    database: PostgresDatabase,
  ) {
    this.#options = options
    this.#jobsLeft = options.lifeJobsMax
    this.#receiver = receiver
    this.#database = database
    this.#dice = diceOf(options.seed, 0)
    this.#callers = new Callers(this.#dice, port, options.weakness === 'rerun')
    this.#variables = { ...settingsFor(port), SYMBOLON_DATABASE_URL: options.database }
  }

  async run(): Promise<TwoServersResult> {
    const begun = performance.now()
    const callers = this.#callers
    const { kills: killsMax, minutes, patient } = this.#options
    try {
      await this.#setUp()
      this.#loading = true
      const load = callers.load(
        () => this.#servers[this.#turn++ % 2]!.url,
        () => this.#goesOn(),
      )
      const end = begun + minutes * 60_000
      let kills = 0
      while ((kills < killsMax && performance.now() < end) || !this.#isEnough()) {
        await this.#kill(++kills)
      }
      this.#loading = false
      await load
      await callers.askAgain(this.#servers[0]!.url)
      const leftClaims = await this.#leftClaims()
      if (!patient) await this.#endClaims()
      await until(async () => (await this.#count('true')) === 0)
      const seen = await seenBy(callers, this.#receiver, this.#servers[0]!.url)
      const seconds = Math.round((performance.now() - begun) / 1000)
      return { kills, seconds, leftClaims, ...judge(seen) }
    } finally {
      await Promise.all(this.#servers.map((it) => it.stop()))
    }
  }

  #isEnough(): boolean {
    const soFar = { accepted: this.#callers.accepted.size, forgotten: this.#forgotten }
    return this.#options.enough?.(soFar) ?? true
  }

  async #setUp(): Promise<void> {
    for (const n of [0, 1]) mkdirSync(this.#folder(n), { recursive: true, mode: 0o700 })
    const first = await this.#start(0)
    this.#servers.push(first)
    copyFileSync(join(this.#folder(0), 'root.key'), join(this.#folder(1), 'root.key'))
    this.#servers.push(await this.#start(1))
    await this.#callers.setUp(first.url, managementKeyIn(first))
  }

  /** Callers wait for the servers now and then: who invokes is quicker than who runs. */
  async #goesOn(): Promise<boolean> {
    while (this.#loading && (await this.#areToWait())) await sleep(LOOK_MS)
    this.#jobsLeft--
    return this.#loading
  }

  async #areToWait(): Promise<boolean> {
    return this.#jobsLeft <= 0 || (await this.#count('NOT claimed')) > WAITING_MAX
  }

  /** One of the two, which is there again before the next one. */
  async #kill(kill: number): Promise<void> {
    await untilKill(this.#receiver, this.#dice)
    const n = this.#dice() < 0.5 ? 0 : 1
    await this.#servers[n]!.stop('SIGKILL')
    this.#receiver.kill = kill
    this.#jobsLeft = this.#options.lifeJobsMax
    if (this.#options.weakness === 'forgetful') {
      const sql = `DELETE FROM jobs WHERE ${UNFINISHED} RETURNING stage`
      this.#forgotten += (await this.#database.ask<{ stage: string }>(sql)).filter(isToRun).length
    }
    this.#servers[n] = await this.#start(n)
    this.#options.onKill(kill, this.#callers.accepted.size)
  }

  async #start(n: number): Promise<RunningVault> {
    const settings = { SYMBOLON_REACTOR_LEVEL: 'jail', ...this.#variables }
    return await startVault(this.#folder(n), settings)
  }

  #folder(n: number): string {
    return join(this.#options.folder, `server-${n}`)
  }

  /** Counts the claims left by killed servers: those of running servers end almost at once. */
  async #leftClaims(): Promise<number> {
    await until(async () => (await this.#count('NOT claimed')) === 0)
    return await this.#count('claimed')
  }

  /** Counts the jobs that match `which` and are still to be run or delivered. */
  async #count(which: string): Promise<number> {
    const sql = `SELECT count(*) AS count FROM jobs WHERE ${UNFINISHED} AND ${which}`
    return (await this.#database.ask<{ count: number }>(sql))[0]!.count
  }

  /** Ends all claims while no server runs, as if their time had passed. One server does what is left. */
  async #endClaims(): Promise<void> {
    await Promise.all(this.#servers.map((it) => it.stop()))
    await this.#database.ask(`UPDATE jobs SET due_at = 0 WHERE ${UNFINISHED}`)
    this.#servers[0] = await this.#start(0)
  }
}

const WAITING_MAX = 8
const LOOK_MS = 100
const UNFINISHED = "stage IN ('run', 'deliver')"
