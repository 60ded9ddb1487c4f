/**
 * Kills a server repeatedly under load, and checks the recovered state against the responses its callers got.
 */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { SqliteDatabase } from './database.ts'
import { diceOf, type Dice } from './dice.ts'
import { Ledger, readLedger, type Entry } from './ledger.ts'
import { Agenda, load } from './load.ts'
import { deathOf, type Death } from './plan.ts'
import type { CrashServerOptions } from './server.ts'
import { countOf, settle, type OperationCounts } from './settle.ts'
import { CrashVerdict, verifyAcked, verifyUntold, type Fault } from './verify.ts'
import { makeKeys, VaultClient, type Keys } from './vault-client.ts'
import { arm, POINTS, type Point } from './points.ts'
import { Victim } from './victim.ts'
import type { Weakness } from './weak-store.ts'
import { operation } from './workload.ts'

export interface HarnessOptions {
  /** Empty; holds the vault, the ledger and a cache of compiled code. */
  readonly folder: string
  readonly kills: number
  readonly seed: number
  readonly clients: number
  /** Named points to kill at; all of them unless given. */
  readonly points?: readonly Point[]
  /** Wait for a named point, in milliseconds, before the server is killed anyway. */
  readonly passMsMax: number
  /** Everything ever acknowledged is read back after so many kills. */
  readonly allEvery: number
  /** Defect injected into the store, to check that the harness detects it. */
  readonly weakness: Weakness | null
  /** Whether to stop once a fault is found, without settling what is in doubt. */
  readonly stopAtFault: boolean
  /**
   * Whether the load so far is enough to draw a conclusion from; otherwise the server is killed more often than `kills`.
   * On a slow machine a server may die before it has acknowledged anything.
   */
  readonly enough?: (counted: OperationCounts) => boolean
  readonly onKill: (kill: number, tally: KillTally) => void
}

export interface KillTally {
  kills: Record<Death['kind'], number>
  /** Named points at which a server died. */
  points: Record<string, number>
  /** Named points that were not passed often enough in time: killed then. */
  missed: number
  /** Milliseconds from spawning to listening. */
  startMs: number[]
}

export interface CrashResult extends KillTally, OperationCounts {
  readonly seconds: number
  /** Tokens of operations that stay unknown, found whole; 0 if it stopped at a fault. */
  readonly untoldTokens: number
  /** Tokens in the database file that a reader may see; 0 if it stopped at a fault. */
  readonly visibleTokens: number
  readonly faults: Record<Fault, number>
  readonly stories: readonly string[]
}

export async function run(options: HarnessOptions): Promise<CrashResult> {
  return await new Harness(options).run()
}

class Harness {
  readonly #options: HarnessOptions
  readonly #vault: string
  readonly #ledgerFile: string
  readonly #ledger: Ledger
  readonly #agenda: Agenda
  readonly #dice: Dice
  readonly #verdict = new CrashVerdict()
  readonly #tally: KillTally = {
    kills: { named: 0, random: 0, starting: 0 },
    points: {},
    missed: 0,
    startMs: [],
  }
  #keys: Keys = { write: '', read: '' }
  /** Start of the last load, and the operations first sent in it. */
  #lastLoad = { since: 0, entries: new Set<Entry>() }

  constructor(options: HarnessOptions) {
    this.#options = options
    this.#vault = join(options.folder, 'vault')
    this.#ledgerFile = join(options.folder, 'ledger.jsonl')
    this.#ledger = new Ledger(this.#ledgerFile)
    this.#agenda = new Agenda((op) => operation(options.seed, op))
    this.#dice = diceOf(options.seed, 0)
  }

  async run(): Promise<CrashResult> {
    const begun = performance.now()
    const { kills, seed, points = POINTS, onKill } = this.#options
    await this.#setUp()
    for (let kill = 1; kill <= kills || !this.#isEnough(); kill++) {
      const death = deathOf(seed, kill, points)
      if (death.kind === 'starting') await this.#killStarting(death.share)
      else await this.#killUnderLoad(death, kill % this.#options.allEvery === 0)
      this.#tally.kills[death.kind]++
      onKill(kill, this.#tally)
      if (this.#isOver) break
    }
    const counted = this.#isOver ? this.#countUnsettled() : await this.#settleAll()
    return {
      ...this.#tally,
      ...counted,
      seconds: (performance.now() - begun) / 1000,
      faults: this.#verdict.counts,
      stories: this.#verdict.stories,
    }
  }

  get #isOver(): boolean {
    return this.#options.stopAtFault && !this.#verdict.innocent
  }

  #countUnsettled() {
    this.#ledger.close()
    return { ...countOf(this.#ledger.entries), untoldTokens: 0, visibleTokens: 0 }
  }

  #isEnough(): boolean {
    return this.#options.enough?.(countOf(this.#ledger.entries)) ?? true
  }

  async #setUp(): Promise<void> {
    const victim = this.#spawn()
    const { port, managementKey } = await victim.ready()
    this.#keys = await makeKeys(port, managementKey!)
    await this.#stop(victim)
  }

  async #killStarting(share: number): Promise<void> {
    const victim = this.#spawn()
    await sleep(share * (this.#tally.startMs.at(-1) ?? 0))
    await victim.kill()
  }

  async #killUnderLoad(
    death: Exclude<Death, { kind: 'starting' }>,
    everything: boolean,
  ): Promise<void> {
    const { victim, client } = await this.#start(death)
    await this.#verify(client, everything)
    if (this.#isOver) {
      client.close()
      return await victim.kill()
    }

    const before = new Set(this.#ledger.entries.values())
    const since = Date.now()
    const limitMs = death.kind === 'random' ? death.afterMs : this.#options.passMsMax
    let late = false
    const timer = setTimeout(() => {
      late = true
      void victim.kill()
    }, limitMs)
    arm(this.#vault, true)
    await load(client, this.#ledger, this.#agenda, this.#options.clients, this.#dice)
    const diedOf = await victim.gone
    clearTimeout(timer)
    client.close()
    if (diedOf !== 'SIGKILL') this.#verdict.add('stray', `a server ended with ${diedOf}`)
    if (death.kind === 'named') this.#countPoint(death.killAt.point, late)
    const entries = [...this.#ledger.entries.values()]
    this.#lastLoad = { since, entries: new Set(entries.filter((it) => !before.has(it))) }
  }

  #countPoint(point: string, missed: boolean): void {
    const { points } = this.#tally
    if (missed) this.#tally.missed++
    else points[point] = (points[point] ?? 0) + 1
  }

  /** Verifies what the last load made, or everything. */
  async #verify(client: VaultClient, everything: boolean): Promise<void> {
    const { since, entries } = this.#lastLoad
    const all = this.#ledger.entries
    await verifyAcked(client, everything ? all.values() : entries, this.#verdict)
    const database = new SqliteDatabase(this.#vault)
    try {
      await verifyUntold(client, database, all, everything ? 0 : since, this.#verdict)
      if (everything) for (const it of database.flaws()) this.#verdict.add('flaw', it)
    } finally {
      database.close()
    }
  }

  /** After the last kill: repeats requests, reads everything back, and checks the file. */
  async #settleAll() {
    const { victim, client } = await this.#start(null)
    await settle(client, this.#ledger, this.#agenda, this.#options.seed)
    this.#ledger.close()

    // From here on only the file counts.
    const entries = readLedger(this.#ledgerFile)
    await verifyAcked(client, entries.values(), this.#verdict)
    const open = new SqliteDatabase(this.#vault)
    const untoldTokens = await verifyUntold(client, open, entries, 0, this.#verdict)
    open.close()
    client.close()
    await this.#stop(victim)

    const database = new SqliteDatabase(this.#vault)
    for (const it of database.flaws()) this.#verdict.add('flaw', it)
    const visibleTokens = database.visibleTokens().length
    database.close()
    const counted = { ...countOf(entries), untoldTokens, visibleTokens }
    if (visibleTokens !== counted.ackedTokens + untoldTokens && this.#verdict.innocent) {
      this.#verdict.add('flaw', `${visibleTokens} tokens are visible, not as many as were told of`)
    }
    return counted
  }

  async #start(death: Death | null): Promise<{ victim: Victim; client: VaultClient }> {
    const begun = performance.now()
    const victim = this.#spawn(death?.kind === 'named' ? death.killAt : null)
    const { port } = await victim.ready()
    this.#tally.startMs.push(performance.now() - begun)
    return { victim, client: new VaultClient(port, this.#keys) }
  }

  #spawn(killAt: CrashServerOptions['killAt'] = null): Victim {
    const { folder, weakness } = this.#options
    arm(this.#vault, false)
    return new Victim({ folder: this.#vault, killAt, weakness }, join(folder, 'code'))
  }

  async #stop(victim: Victim): Promise<void> {
    const diedOf = await victim.stop()
    if (diedOf !== 'status 0') this.#verdict.add('stray', `a server ended with ${diedOf}`)
  }
}
