/**
 * Cuts the connection between the service and its database at every byte of a commit, and checks the stored state, and
 * the result of repeating the request, against the response the caller got.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  PostgresDatabase,
  VISIBLE,
  firstIdAt,
  tokensMadeIn,
} from '../../crash/postgres-database.ts'
import { makeKeys } from '../../crash/vault-client.ts'
import { Victim } from '../../crash/victim.ts'
import type { Weakness } from '../../crash/weak-store.ts'
import type { Json } from '../../src/base/json.ts'
import { CuttingProxy, type Lengths, type CutPoint } from './cutting-proxy.ts'
import {
  CUT_FAULTS,
  isDone,
  judge,
  type CutFault,
  type CutReply,
  type StoredByCut,
} from './judge.ts'
import { cutPointsIn } from './cut-points.ts'
import { KINDS, labelOf, type CutKind } from './requests.ts'

export interface CutOptions {
  /** Empty; holds the root key and a cache of compiled code. */
  readonly folder: string
  /** An empty database, on a server with a socket. */
  readonly database: string
  readonly cuts: number
  readonly seed: number
  /** How long an answer may take. */
  readonly answerMsMax: number
  /** Defect injected into the store, to check that the harness detects it. */
  readonly weakness: Weakness | null
  /** Whether to stop once a fault is found. */
  readonly stopAtFault: boolean
  readonly onCut: (cut: number) => void
}

export interface CutResult {
  readonly cuts: number
  readonly seconds: number
  /** Bytes of a commit of each kind, both ways. */
  readonly bytes: Readonly<Record<string, number>>
  /** Different points at which one was cut. */
  readonly points: number
  /** Outcomes reported to callers, and what the database held. */
  readonly told: number
  readonly unknownAndThere: number
  readonly unknownAndNot: number
  readonly longestMs: number
  readonly faults: Readonly<Record<CutFault, number>>
  readonly stories: readonly string[]
}

export async function runCuts(options: CutOptions): Promise<CutResult> {
  const { folder, weakness } = options
  const { proxy, url } = await CuttingProxy.open(options.database)
  const vault = join(folder, 'vault')
  mkdirSync(vault, { recursive: true })
  const server = { folder: vault, database: url, killAt: null, weakness }
  const victim = new Victim(server, join(folder, 'code'))
  try {
    const { port, managementKey } = await victim.ready()
    const { write } = await makeKeys(port, managementKey!)
    const database = await PostgresDatabase.open(options.database)
    const result = await new CutHarness(options, proxy, database, port, write).run()
    await database.close()
    return result
  } finally {
    await victim.stop()
    await proxy.close()
  }
}

/** State before a request. */
interface Before {
  readonly since: number
  readonly events: number
  readonly answers: number
}

class CutHarness {
  readonly #options: CutOptions
  readonly #proxy: CuttingProxy
  readonly #database: PostgresDatabase
  readonly #url: string
  readonly #key: string
  readonly #counts = { told: 0, unknownAndThere: 0, unknownAndNot: 0, longestMs: 0 }
  readonly #faults = Object.fromEntries(Object.keys(CUT_FAULTS).map((it) => [it, 0])) as Record<
    CutFault,
    number
  >
  readonly #stories: string[] = []
  #next = 0

  constructor(
    options: CutOptions,
    proxy: CuttingProxy,
    database: PostgresDatabase,
    port: number,
    key: string,
  ) {
    this.#options = options
    this.#proxy = proxy
    this.#database = database
    this.#url = `http://127.0.0.1:${port}`
    this.#key = key
  }

  async run(): Promise<CutResult> {
    const begun = performance.now()
    const { cuts, seed, onCut } = this.#options
    const bytes: Record<string, number> = {}
    const points = new Set<string>()
    for (const kind of KINDS) {
      if (this.#isOver) break
      const lengths = await this.#measure(kind)
      bytes[kind.name] = Object.values(lengths).reduce((all, it) => all + it.asked + it.answered, 0)
      for (const point of cutPointsIn(lengths, Math.round(cuts * kind.share), seed)) {
        await this.#cut(kind, point, lengths.BEGIN)
        points.add(JSON.stringify([kind.name, point]))
        onCut(this.#next)
        if (this.#isOver) break
      }
    }
    for (const it of await this.#database.flaws()) this.#add('flaw', it)
    const seconds = Math.round((performance.now() - begun) / 1000)
    const [faults, stories] = [this.#faults, this.#stories]
    return { cuts, seconds, bytes, points: points.size, ...this.#counts, faults, stories }
  }

  get #isOver(): boolean {
    return this.#options.stopAtFault && this.#stories.length > 0
  }

  /** Measures the second of two: the first for a tenant, or on a connection, does one-time work. */
  async #measure(kind: CutKind) {
    for (let times = 0; times < 2; times++) {
      const send = await this.#prepare(kind, ++this.#next)
      const reply = await send?.()
      if (!reply || !isDone(reply)) throw new Error(`Cannot measure ${kind.name}: ${reply?.text}`)
    }
    return structuredClone(this.#proxy.last)
  }

  async #cut(kind: CutKind, point: CutPoint, lengths: Lengths): Promise<void> {
    const n = ++this.#next
    const before = await this.#before()
    const send = await this.#prepare(kind, n)
    if (send === null) return this.#add('lost', `${kind.name}, cut ${n}: the transaction`)
    const cutting = this.#proxy.cut(point)
    const reply = await send()
    const stored = await this.#stored(n, before)
    const again = { reply: await send(), stored: await this.#stored(n, before) }
    const { asked } = await Promise.race([cutting, sleep(CUT_MS_MAX, NOT_CUT, { ref: false })])
    const mayHaveAsked = asked || isAtItsEnd(point, lengths)
    const seen = { wanted: kind.tokens, mayHaveAsked, reply, stored, again }
    for (const [fault, story] of judge(seen, this.#options.answerMsMax)) {
      this.#add(fault, `${kind.name}, cut ${n}, ${JSON.stringify(point)}: ${story}`)
    }
    const counts = this.#counts
    if (isDone(reply)) counts.told++
    else if (stored.tokens.length > 0) counts.unknownAndThere++
    else counts.unknownAndNot++
    counts.longestMs = Math.round(Math.max(counts.longestMs, reply.ms, again.reply.ms))
  }

  #add(fault: CutFault, story: string): void {
    if (++this.#faults[fault] <= STORIES_MAX) this.#stories.push(`${fault}: ${story}`)
  }

  async #before(): Promise<Before> {
    const [row] = await this.#database.ask<{ events: number; answers: number }>(
      `SELECT (SELECT number FROM tenant_heads) AS events, (SELECT count(*) FROM answers) AS answers`,
    )
    return { since: Date.now(), ...row! }
  }

  async #stored(n: number, { since, events, answers }: Before): Promise<StoredByCut> {
    await this.#database.settled()
    const tokens = await this.#database.ask<{ serial: string }>(
      `SELECT serial FROM tokens WHERE serial >= $1 AND metadata LIKE $2 AND ${VISIBLE}`,
      [firstIdAt(since), `%${labelOf(n)}%`],
    )
    const rows = await this.#database.ask<{ entry: Uint8Array }>(
      'SELECT entry FROM record WHERE number > $1',
      [events],
    )
    const [now] = await this.#database.ask<{ count: number }>('SELECT count(*) FROM answers')
    return {
      tokens: tokens.map((it) => it.serial),
      recorded: rows.flatMap((it) => tokensMadeIn(it.entry)),
      answers: now!.count - answers,
    }
  }

  /**
   * Makes the preceding requests, and returns a function that makes the commit to cut, each time it is called; null when
   * the preceding state is gone.
   */
  async #prepare(kind: CutKind, n: number): Promise<(() => Promise<CutReply>) | null> {
    const once = { 'bt-idempotency-key': labelOf(n) }
    const payload = kind.payload(n)
    if (!kind.transacted) return async () => await this.#post('/tokenize', once, payload)
    const opened = await this.#post('/transactions', {})
    const { id } = JSON.parse(opened.text) as { id: string }
    const made = await this.#post('/tokenize', { 'bt-transaction-id': id }, payload)
    if (!isDone(made)) return null
    return async () => await this.#post(`/transactions/${id}/commit`, once)
  }

  async #post(path: string, headers: Record<string, string>, body?: Json): Promise<CutReply> {
    const begun = performance.now()
    const response = await fetch(this.#url + path, {
      method: 'POST',
      headers: {
        'bt-api-key': this.#key,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    const retryAfter = response.headers.get('retry-after')
    return { status: response.status, retryAfter, text, ms: performance.now() - begun }
  }
}

/**
 * Whether every answer before COMMIT may have come through: then it is unknown whether the server sent COMMIT.
 * Transactions differ in length by a few bytes, with the numbers in them.
 */
function isAtItsEnd({ side, bytes }: CutPoint, lengths: Lengths): boolean {
  return side === 'answered' && bytes > lengths.answered - BYTES_MORE_OR_LESS
}

const BYTES_MORE_OR_LESS = 8

/** No transaction was begun; the response is judged all the same. */
const NOT_CUT = { asked: false }
const CUT_MS_MAX = 1_000
const STORIES_MAX = 10
