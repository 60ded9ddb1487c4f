/**
 * Brings PostgreSQL down repeatedly under load, ends its backends one by one, and checks the state afterwards against the
 * responses callers got. The service itself is never touched; it is as many servers as the run asks for, used in turn.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { diceOf, type Dice } from '../../crash/dice.ts'
import { Ledger, digestOf, readLedger, type Entry } from '../../crash/ledger.ts'
import { Agenda, perform } from '../../crash/load.ts'
import { arm } from '../../crash/points.ts'
import { PostgresDatabase } from '../../crash/postgres-database.ts'
import { countOf, settle, type OperationCounts } from '../../crash/settle.ts'
import { makeKeys, VaultClient, type ReportedCall, type Keys } from '../../crash/vault-client.ts'
import { FAULTS, CrashVerdict, verifyAcked, verifyUntold } from '../../crash/verify.ts'
import { Victim } from '../../crash/victim.ts'
import type { Ready } from '../../crash/server.ts'
import type { Weakness } from '../../crash/weak-store.ts'
import { operation } from '../../crash/workload.ts'
import type { Cluster } from '../kit/postgres/cluster.ts'
import { roundRobin } from '../kit/round-robin.ts'
import { serversAsked } from '../kit/servers.ts'
import { DOWNFALLS, bringDown, endBackend, type Downfall } from './kills.ts'

export interface OutageOptions {
  /** Empty; holds the root key, the ledger and a cache of compiled code. */
  readonly folder: string
  /** A server with nothing in it, that may be killed; durable, as in production. */
  readonly cluster: Cluster
  readonly downfalls: number
  /** Backends that are ended, spread over the time in between. */
  readonly backends: number
  readonly seed: number
  readonly clients: number
  /** Everything ever acknowledged is read back after so many rounds. */
  readonly allEvery: number
  /** How long an answer may take, and how long the service may stay away after the database is back. */
  readonly answerMsMax: number
  readonly backMsMax: number
  /** Defect injected into the store, to check that the harness detects it. */
  readonly weakness: Weakness | null
  /** Whether to stop once a fault is found, without settling what is in doubt. */
  readonly stopAtFault: boolean
  /** Whether the load so far is enough to draw a conclusion from; otherwise there are more rounds than `downfalls`. */
  readonly enough?: (counted: OperationCounts) => boolean
  readonly onRound: (round: number, tally: OutageTally) => void
}

export const OUTAGE_FAULTS = {
  ...FAULTS,
  hung: 'an answer that took longer than it may',
  late: 'not back in time after the database was',
} as const
export type OutageFault = keyof typeof OUTAGE_FAULTS

export interface OutageTally {
  readonly downfalls: Record<Downfall, number>
  backends: number
  /** Of those, in the middle of something. */
  busyBackends: number
  /** Milliseconds from when the database could be connected to until something was acknowledged. */
  readonly backMs: number[]
  /** Answers by status; 0 stands for none. */
  readonly answers: Record<number, number>
  longestMs: number
  reads: number
}

export interface OutageResult extends OutageTally, OperationCounts {
  readonly seconds: number
  /** As in the crash harness: 0 if it stopped at a fault. */
  readonly untoldTokens: number
  readonly visibleTokens: number
  readonly faults: Readonly<Record<OutageFault, number>>
  readonly stories: readonly string[]
}

export async function runOutages(options: OutageOptions): Promise<OutageResult> {
  const vault = join(options.folder, 'vault')
  mkdirSync(vault, { recursive: true })
  arm(vault, true)
  const { weakness, cluster } = options
  const server = { folder: vault, database: cluster.url, killAt: null, weakness }
  const victims: Victim[] = []
  const all: Ready[] = []
  try {
    while (victims.length < serversAsked()) {
      const victim = new Victim(server, join(options.folder, 'code'))
      victims.push(victim)
      all.push(await victim.ready())
    }
    const keys = await makeKeys(all[0]!.port, all[0]!.managementKey!)
    const front = await roundRobin(all.map((it) => `http://127.0.0.1:${it.port}`))
    const port = Number(new URL(front.url).port)
    const result = await new OutageHarness(options, port, keys).run()
    await front.close()
    return result
  } finally {
    for (const it of victims) await it.stop()
  }
}

class OutageHarness {
  readonly #options: OutageOptions
  readonly #client: VaultClient
  readonly #ledgerFile: string
  readonly #ledger: Ledger
  readonly #agenda: Agenda
  /** Decides how and when the database goes away; the callers have dice of their own, since how often they roll varies. */
  readonly #dice: Dice
  readonly #loadDice: Dice
  readonly #verdict = new CrashVerdict()
  readonly #own = { hung: 0, late: 0 }
  readonly #stories: string[] = []
  readonly #tally: OutageTally = {
    downfalls: { killed: 0, orphaned: 0, immediate: 0 },
    backends: 0,
    busyBackends: 0,
    backMs: [],
    answers: {},
    longestMs: 0,
    reads: 0,
  }
  #loading = false
  /** Called for everything that is acknowledged. */
  #onAcked: () => void = () => {}
  #acked = 0

  constructor(options: OutageOptions, port: number, keys: Keys) {
    this.#options = options
    this.#client = new VaultClient(port, keys, {
      mayBeAway: true,
      onCall: (call) => this.#onCall(call),
    })
    this.#ledgerFile = join(options.folder, 'ledger.jsonl')
    this.#ledger = new Ledger(this.#ledgerFile)
    this.#agenda = new Agenda((op) => operation(options.seed, op))
    this.#dice = diceOf(options.seed, 0)
    this.#loadDice = diceOf(options.seed, -1)
  }

  async run(): Promise<OutageResult> {
    const begun = performance.now()
    const { downfalls, allEvery, onRound } = this.#options
    for (let round = 1; round <= downfalls || !this.#isEnough(); round++) {
      await this.#round(round, round % allEvery === 0)
      onRound(round, this.#tally)
      if (this.#isOver) break
    }
    const counted = this.#isOver ? this.#countUnsettled() : await this.#settleAll()
    this.#client.close()
    return {
      ...this.#tally,
      ...counted,
      seconds: Math.round((performance.now() - begun) / 1000),
      faults: { ...this.#verdict.counts, ...this.#own },
      stories: [...this.#verdict.stories, ...this.#stories],
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

  /** Runs load, ends backends during it, brings the server down at the end, then verifies the result. */
  async #round(round: number, everything: boolean): Promise<void> {
    const before = new Set(this.#ledger.entries.keys())
    const since = Date.now()
    this.#loading = true
    const load = this.#load()
    const acked = this.#acked
    // However slow the machine is, there is something to lose.
    while (this.#acked < acked + ACKED_MIN) await sleep(LOOK_MS)
    await this.#endBackends(round)
    await this.#outage()
    this.#loading = false
    await load
    const all = this.#ledger.entries
    const now = [...all].flatMap(([op, entry]) => (before.has(op) ? [] : [entry]))
    await this.#verify(all, everything ? all.values() : now, everything ? 0 : since)
  }

  async #endBackends(round: number): Promise<void> {
    const { backends, downfalls } = this.#options
    const upTo = Math.round((Math.min(round, downfalls) * backends) / downfalls)
    const database = await PostgresDatabase.open(this.#options.cluster.url)
    while (this.#tally.backends < upTo) {
      await sleep(this.#dice() * BACKEND_PAUSE_MS_MAX)
      const busy = await endBackend(database, this.#dice)
      if (busy === null) continue
      this.#tally.backends++
      if (busy) this.#tally.busyBackends++
    }
    await database.close()
    await sleep(this.#dice() * BACKEND_PAUSE_MS_MAX)
  }

  async #outage(): Promise<void> {
    const { cluster, backMsMax } = this.#options
    const ways = Object.keys(DOWNFALLS) as Downfall[]
    const how = ways[Math.floor(this.#dice() * ways.length)]!
    await bringDown(cluster, how)
    this.#tally.downfalls[how]++
    await sleep(this.#dice() * AWAY_MS_MAX)
    await cluster.restart()
    const begun = performance.now()
    const { promise: acked, resolve } = Promise.withResolvers<void>()
    this.#onAcked = resolve
    await Promise.race([acked, sleep(backMsMax, null, { ref: false })])
    const ms = Math.round(performance.now() - begun)
    this.#tally.backMs.push(ms)
    if (ms < backMsMax) return
    this.#own.late++
    this.#stories.push(`late: downfall ${this.#tally.backMs.length}, ${how}`)
    await acked
  }

  async #load(): Promise<void> {
    const writers = Array.from({ length: this.#options.clients }, async () => {
      while (this.#loading) {
        const next = this.#agenda.take()
        await perform(this.#client, this.#ledger, this.#agenda, next)
        const { outcome } = this.#ledger.entries.get(next.sent.op)!
        if (outcome.outcome === 'acked') {
          this.#acked++
          this.#onAcked()
        }
        await sleep(this.#loadDice() * REST_MS_MAX)
      }
    })
    const readers = Array.from({ length: READERS }, async () => {
      while (this.#loading) {
        await this.#readBack()
        await sleep(this.#loadDice() * REST_MS_MAX)
      }
    })
    await Promise.all([...writers, ...readers])
  }

  /** Reads any acknowledged token: during an outage the read may fail, but must not report that the token is missing. */
  async #readBack(): Promise<void> {
    const { entries } = this.#ledger
    const entry = entries.get(1 + Math.floor(this.#loadDice() * entries.size))
    if (entry?.outcome.outcome !== 'acked') return
    const { outcome, sent } = entry
    const n = Math.floor(this.#loadDice() * outcome.tokens.length)
    let token: Awaited<ReturnType<VaultClient['read']>>
    try {
      token = await this.#client.read(outcome.tokens[n]!.id)
    } catch {
      return
    }
    this.#tally.reads++
    if (token !== null && digestOf(token['data']!) === sent.digests[n]) return
    this.#verdict.add('lost', `operation ${sent.op}, token ${n}, read under load`)
  }

  #onCall({ about, status, retryAfter, ms }: ReportedCall): void {
    const { answers } = this.#tally
    answers[status ?? 0] = (answers[status ?? 0] ?? 0) + 1
    this.#tally.longestMs = Math.max(this.#tally.longestMs, Math.round(ms))
    const told = `${about}: ${status} after ${Math.round(ms)} ms`
    const hung = ms > this.#options.answerMsMax
    if (hung && ++this.#own.hung <= STORIES_MAX) this.#stories.push(`hung: ${told}`)
    // The server is there all the time, and says what it does not know.
    const failed = status === null || status >= 500
    if (failed && !(status === 503 && retryAfter !== undefined)) this.#verdict.add('stray', told)
  }

  async #verify(
    all: ReadonlyMap<number, Entry>,
    entries: Iterable<Entry>,
    since: number,
  ): Promise<number> {
    const database = await PostgresDatabase.open(this.#options.cluster.url)
    try {
      await verifyAcked(this.#client, entries, this.#verdict)
      const untold = await verifyUntold(this.#client, database, all, since, this.#verdict)
      if (since === 0) for (const it of await database.flaws()) this.#verdict.add('flaw', it)
      return untold
    } finally {
      await database.close()
    }
  }

  /** With the database left alone: asks again, asks everything back, looks into the tables. */
  async #settleAll() {
    await settle(this.#client, this.#ledger, this.#agenda, this.#options.seed)
    this.#ledger.close()
    // From here on only the file counts.
    const entries = readLedger(this.#ledgerFile)
    const untoldTokens = await this.#verify(entries, entries.values(), 0)
    const database = await PostgresDatabase.open(this.#options.cluster.url)
    const visibleTokens = (await database.visibleTokens()).length
    await database.close()
    const counted = { ...countOf(entries), untoldTokens, visibleTokens }
    if (visibleTokens !== counted.ackedTokens + untoldTokens && this.#verdict.innocent) {
      this.#verdict.add('flaw', `${visibleTokens} tokens are visible, not as many as were told of`)
    }
    return counted
  }
}

const READERS = 4
const ACKED_MIN = 20
const LOOK_MS = 10
const REST_MS_MAX = 60
const BACKEND_PAUSE_MS_MAX = 150
/** How long the database stays away, besides the time it takes to start. */
const AWAY_MS_MAX = 300
const STORIES_MAX = 10
