/**
 * Switches a primary and its standby over and kills primaries repeatedly, under the load of two servers that are never touched,
 * and checks what they answered meanwhile, and the state afterwards, against the responses callers got.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { diceOf, type Dice } from '../../crash/dice.ts'
import { Ledger, readLedger, type Entry } from '../../crash/ledger.ts'
import { Agenda } from '../../crash/load.ts'
import { arm } from '../../crash/points.ts'
import { PostgresDatabase } from '../../crash/postgres-database.ts'
import type { Ready } from '../../crash/server.ts'
import { countOf, settle, type OperationCounts } from '../../crash/settle.ts'
import { makeKeys, VaultClient, type Keys, type ReportedCall } from '../../crash/vault-client.ts'
import {
  CrashVerdict,
  FAULTS,
  verifyAcked,
  verifyUntold,
  type VisibleTokens,
} from '../../crash/verify.ts'
import { Victim } from '../../crash/victim.ts'
import { operation, type WorkloadOperation } from '../../crash/workload.ts'
import { roundRobin } from '../kit/round-robin.ts'
import { BackWatch, type BackAgain } from './back-watch.ts'
import type { FailoverPair, LoadDuringEvent } from './failover-pair.ts'
import { PairLoad, type LoadShape } from './pair-load.ts'
import { PROBE_PREFIX, StandbyProbe, type StaleAnswer } from './standby-probe.ts'

export interface SwitchoverOptions {
  /** Empty; holds the root key, the ledger and a cache of compiled code. */
  readonly folder: string
  /** With nothing in it. */
  readonly pair: FailoverPair
  readonly switchovers: number
  readonly kills: number
  readonly seed: number
  readonly callers: LoadShape
  /** Operations that make more tokens are left out: each is read back. */
  readonly tokensMax: number
  /** Defect injected into the connections of the servers, to check that the harness detects it. */
  readonly acceptsStandbys: boolean
  /** Whether to stop once a fault is found, without settling what is in doubt. */
  readonly stopAtFault: boolean
  readonly onEvent: (tally: SwitchoverTally) => void
}

type PairEvent = 'switchover' | 'kill'

export const SWITCHOVER_FAULTS = {
  ...FAULTS,
  stale: 'an answer that a standby gave, or another server that is behind',
  died: 'a server of ours that did not go on',
} as const
export type SwitchoverFault = keyof typeof SWITCHOVER_FAULTS

export interface SwitchoverTally {
  switchovers: number
  kills: number
  readonly back: BackAgain[]
  /** Answers by status; 0 stands for none. */
  readonly answers: Record<number, number>
  longestMs: number
  reads: number
  /** Answers to questions about what a standby would not know, and those that were wrong, there and under load. */
  probes: number
  readonly stale: Record<StaleAnswer, number>
}

export interface SwitchoverResult extends SwitchoverTally, OperationCounts {
  readonly seconds: number
  /** As in the crash harness: 0 if it stopped at a fault. */
  readonly untoldTokens: number
  readonly visibleTokens: number
  readonly faults: Readonly<Record<SwitchoverFault, number>>
  readonly stories: readonly string[]
}

export async function runSwitchovers(options: SwitchoverOptions): Promise<SwitchoverResult> {
  const vault = join(options.folder, 'vault')
  mkdirSync(vault, { recursive: true })
  arm(vault, true)
  const { acceptsStandbys, pair } = options
  const servers: Victim[] = []
  const all: Ready[] = []
  try {
    for (const database of pair.addresses) {
      const server = { folder: vault, database, killAt: null, weakness: null, acceptsStandbys }
      const victim = new Victim(server, join(options.folder, 'code'))
      servers.push(victim)
      all.push(await victim.ready())
    }
    const ports = all.map((it) => it.port)
    const keys = await makeKeys(ports[0]!, all[0]!.managementKey!)
    const front = await roundRobin(ports.map((it) => `http://127.0.0.1:${it}`))
    const harness = new SwitchoverHarness(options, {
      servers,
      ports,
      keys,
      managementKey: all[0]!.managementKey!,
      frontPort: Number(new URL(front.url).port),
    })
    const result = await harness.run()
    await front.close()
    return result
  } finally {
    for (const it of servers) await it.stop()
  }
}

interface RunningPair {
  readonly servers: readonly Victim[]
  readonly ports: readonly number[]
  readonly keys: Keys
  readonly managementKey: string
  readonly frontPort: number
}

class SwitchoverHarness {
  readonly #options: SwitchoverOptions
  readonly #running: RunningPair
  readonly #client: VaultClient
  readonly #ledgerFile: string
  readonly #ledger: Ledger
  readonly #agenda: Agenda
  readonly #load: PairLoad
  readonly #dice: Dice
  readonly #verdict = new CrashVerdict()
  readonly #own = { stale: 0, died: 0 }
  readonly #stories: string[] = []
  readonly #tally: SwitchoverTally = {
    switchovers: 0,
    kills: 0,
    back: [],
    answers: {},
    longestMs: 0,
    reads: 0,
    probes: 0,
    stale: { missing: 0, deleted: 0, revoked: 0, transaction: 0 },
  }
  #probeKey = ''

  constructor(options: SwitchoverOptions, running: RunningPair) {
    this.#options = options
    this.#running = running
    const { folder, seed, callers } = options
    this.#client = new VaultClient(running.frontPort, running.keys, {
      mayBeAway: true,
      onCall: (call) => this.#onCall(call),
    })
    this.#ledgerFile = join(folder, 'ledger.jsonl')
    this.#ledger = new Ledger(this.#ledgerFile)
    this.#agenda = new Agenda(nextShort(seed, options.tokensMax))
    this.#dice = diceOf(seed, 0)
    this.#load = new PairLoad({
      client: this.#client,
      ledger: this.#ledger,
      agenda: this.#agenda,
      callers,
      seed,
      onStale: (story) => this.#onStale('missing', story),
    })
  }

  async run(): Promise<SwitchoverResult> {
    const begun = performance.now()
    await this.#makeProbeKey()
    for (const [n, event] of this.#events().entries()) {
      await this.#round(n + 1, event)
      this.#options.onEvent(this.#tally)
      if (this.#isOver) break
    }
    const counted = this.#isOver ? this.#countUnsettled() : await this.#settleAll()
    this.#client.close()
    this.#tally.reads = this.#load.reads
    return {
      ...this.#tally,
      ...counted,
      seconds: Math.round((performance.now() - begun) / 1000),
      faults: { ...this.#verdict.counts, ...this.#own },
      stories: [...this.#verdict.stories, ...this.#stories],
    }
  }

  get #eventCount(): number {
    return this.#options.switchovers + this.#options.kills
  }

  /** In an order that the dice decide. */
  #events(): PairEvent[] {
    const left = { switchover: this.#options.switchovers, kill: this.#options.kills }
    const events: PairEvent[] = []
    while (left.switchover + left.kill > 0) {
      const switches = this.#dice() * (left.switchover + left.kill) < left.switchover
      const event = switches ? 'switchover' : 'kill'
      left[event]--
      events.push(event)
    }
    return events
  }

  async #makeProbeKey(): Promise<void> {
    this.#probeKey = await this.#client.makeApplication(this.#running.managementKey, {
      name: 'probe',
      type: 'private',
      permissions: ['token:create', 'token:read', 'token:delete'],
    })
  }

  /** Lets the pair change roles under load, then verifies what was acknowledged; the end verifies everything. */
  async #round(round: number, event: PairEvent): Promise<void> {
    const before = new Set(this.#ledger.entries.keys())
    const since = Date.now()
    const probe = this.#probe(round)
    await probe.prepare()
    this.#load.start()
    await this.#load.acknowledged(ACKED_MIN)
    const watch = new BackWatch(this.#running.ports, this.#running.keys.write, round)
    const during: LoadDuringEvent = {
      answers: (count) => this.#load.answers(count, ANSWERS_MS_MAX),
      gone: (how) => watch.gone(how),
      reachable: () => watch.reachable(),
      probe: () => probe.exercise(),
    }
    const { pair } = this.#options
    if (event === 'switchover') await pair.switchOver(this.#dice, during)
    else await pair.kill(this.#dice, during)
    this.#tally.back.push(await watch.back())
    this.#tally[event === 'kill' ? 'kills' : 'switchovers']++
    await this.#load.acknowledged(ACKED_MIN)
    await this.#load.stop()
    this.#tally.probes += probe.answers
    this.#checkServers(round)
    if (round === this.#eventCount && !this.#options.stopAtFault) return
    const entries = this.#ledger.entries
    const later = [...entries].flatMap(([op, entry]) => (before.has(op) ? [] : [entry]))
    await this.#verify(entries, later, since)
  }

  #probe(round: number): StandbyProbe {
    const { ports, managementKey } = this.#running
    return new StandbyProbe(
      {
        ports,
        managementKey,
        key: this.#probeKey,
        onStale: (about, story) => this.#onStale(about, story),
      },
      round,
    )
  }

  #checkServers(round: number): void {
    for (const [n, it] of this.#running.servers.entries()) {
      if (!it.running) this.#add('died', `server ${n}, event ${round}`)
    }
  }

  get #isOver(): boolean {
    const { stale, died } = this.#own
    return this.#options.stopAtFault && !(this.#verdict.innocent && stale + died === 0)
  }

  #onStale(about: StaleAnswer, story: string): void {
    this.#tally.stale[about]++
    this.#add('stale', story)
  }

  #add(fault: 'stale' | 'died', story: string): void {
    if (++this.#own[fault] <= STORIES_MAX) this.#stories.push(`${fault}: ${story}`)
  }

  #onCall(call: ReportedCall): void {
    const { about, status, retryAfter, ms } = call
    const { answers } = this.#tally
    answers[status ?? 0] = (answers[status ?? 0] ?? 0) + 1
    this.#tally.longestMs = Math.max(this.#tally.longestMs, Math.round(ms))
    const failed = status === null || status >= 500
    if (failed && !(status === 503 && retryAfter !== undefined)) {
      this.#verdict.add('stray', `${about}: ${status} after ${Math.round(ms)} ms`)
    }
    this.#load.count(call)
  }

  async #verify(
    all: ReadonlyMap<number, Entry>,
    entries: Iterable<Entry>,
    since: number,
  ): Promise<{ untoldTokens: number; visibleTokens: number }> {
    const database = await PostgresDatabase.open(await this.#options.pair.primaryUrl())
    const own: VisibleTokens = { visibleTokens: (from) => tokensOfLoad(database, from) }
    try {
      await verifyAcked(this.#client, entries, this.#verdict)
      const untoldTokens = await verifyUntold(this.#client, own, all, since, this.#verdict)
      for (const it of await database.flaws()) this.#verdict.add('flaw', it)
      return { untoldTokens, visibleTokens: (await own.visibleTokens(0)).length }
    } finally {
      await database.close()
    }
  }

  #countUnsettled() {
    this.#ledger.close()
    return { ...countOf(this.#ledger.entries), untoldTokens: 0, visibleTokens: 0 }
  }

  /** With the databases left alone: asks again, asks everything back, looks into the tables. */
  async #settleAll() {
    await settle(this.#client, this.#ledger, this.#agenda, this.#options.seed)
    this.#ledger.close()
    // From here on only the file counts.
    const entries = readLedger(this.#ledgerFile)
    const found = await this.#verify(entries, entries.values(), 0)
    const counted = { ...countOf(entries), ...found }
    if (found.visibleTokens !== counted.ackedTokens + found.untoldTokens) {
      this.#verdict.add('flaw', `${found.visibleTokens} tokens are visible, not as many as told`)
    }
    return counted
  }
}

const ACKED_MIN = 20
/** At most this long for answers that may all be held back. */
const ANSWERS_MS_MAX = 1_500
const STORIES_MAX = 10

/** Returns a source of the operations of a seed that make no more than so many tokens. */
function nextShort(seed: number, tokensMax: number): () => WorkloadOperation {
  let op = 0
  return () => {
    for (;;) {
      const next = operation(seed, ++op)
      if (next.sent.digests.length <= tokensMax) return next
    }
  }
}

/** Returns the visible tokens without those of probes and measurements. */
async function tokensOfLoad(database: PostgresDatabase, since: number): Promise<string[]> {
  return (await database.visibleTokens(since)).filter((id) => !id.startsWith(PROBE_PREFIX))
}
