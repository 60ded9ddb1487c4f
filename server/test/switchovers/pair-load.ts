/** LoadShape that make, read, change and delete tokens through both servers, and keep the books. */
import { setTimeout as sleep } from 'node:timers/promises'
import { diceOf, type Dice } from '../../crash/dice.ts'
import { digestOf, type Ledger } from '../../crash/ledger.ts'
import { perform, type Agenda } from '../../crash/load.ts'
import type { ReportedCall, VaultClient } from '../../crash/vault-client.ts'

/** How many call at once, and how long each rests at most after an answer. */
export interface LoadShape {
  readonly writers: number
  readonly readers: number
  readonly restMsMax: number
}

export interface PairLoadOptions {
  readonly client: VaultClient
  readonly ledger: Ledger
  readonly agenda: Agenda
  readonly callers: LoadShape
  readonly seed: number
  /** Called with what an answer to a read said that it must not. */
  readonly onStale: (story: string) => void
}

export class PairLoad {
  readonly #options: PairLoadOptions
  readonly #dice: Dice
  readonly #waiting = new Set<() => void>()
  #running: Promise<unknown> | null = null
  #loading = false
  #answered = 0
  acked = 0
  reads = 0

  constructor(options: PairLoadOptions) {
    this.#options = options
    this.#dice = diceOf(options.seed, -1)
  }

  start(): void {
    this.#loading = true
    const { writers, readers } = this.#options.callers
    const work = [
      ...Array.from({ length: writers }, () => () => this.#write()),
      ...Array.from({ length: readers }, () => () => this.#readBack()),
    ]
    this.#running = Promise.all(work.map((it) => this.#repeat(it)))
  }

  async stop(): Promise<void> {
    this.#loading = false
    await this.#running
  }

  /** To be called with every answer. */
  count({ status }: ReportedCall): void {
    if (status !== null) this.#answered++
    for (const it of this.#waiting) it()
  }

  /** Resolves after so many more answers, or `msMax`: servers may hold all of them back. */
  async answers(count: number, msMax: number): Promise<void> {
    const target = this.#answered + count
    await this.#until(() => this.#answered >= target, msMax)
  }

  /** Resolves after so many more operations were acknowledged. */
  async acknowledged(count: number): Promise<void> {
    const target = this.acked + count
    await this.#until(() => this.acked >= target)
  }

  async #until(reached: () => boolean, msMax?: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const look = (): void => {
      if (reached()) resolve()
    }
    this.#waiting.add(look)
    look()
    await (msMax === undefined ? promise : Promise.race([promise, sleep(msMax, undefined)]))
    this.#waiting.delete(look)
  }

  async #repeat(work: () => Promise<void>): Promise<void> {
    while (this.#loading) {
      await work()
      await sleep(this.#dice() * this.#options.callers.restMsMax)
    }
  }

  async #write(): Promise<void> {
    const { client, ledger, agenda } = this.#options
    const next = agenda.take()
    await perform(client, ledger, agenda, next)
    if (ledger.entries.get(next.sent.op)!.outcome.outcome !== 'acked') return
    this.acked++
    for (const it of this.#waiting) it()
  }

  /** Reads an acknowledged token, mostly of the latest: the read may fail, but must not report that the token is missing. */
  async #readBack(): Promise<void> {
    const { client, ledger, onStale } = this.#options
    const { size } = ledger.entries
    const span = this.#dice() < LATEST_SHARE ? Math.min(size, LATEST) : size
    const entry = ledger.entries.get(size - Math.floor(this.#dice() * span))
    if (entry?.outcome.outcome !== 'acked') return
    const { outcome, sent } = entry
    const n = Math.floor(this.#dice() * outcome.tokens.length)
    let token: Awaited<ReturnType<VaultClient['read']>>
    try {
      token = await client.read(outcome.tokens[n]!.id)
    } catch {
      return
    }
    this.reads++
    if (token !== null && digestOf(token['data']!) === sent.digests[n]) return
    onStale(`operation ${sent.op}, token ${n}, read under load`)
  }
}

const LATEST = 40
const LATEST_SHARE = 0.7
