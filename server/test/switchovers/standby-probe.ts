/** Asks servers for what only an up-to-date primary knows, and counts the answers that come from another one. */
import { setTimeout as sleep } from 'node:timers/promises'
import { request } from 'undici'
import type { JsonObject } from '../../src/base/json.ts'
import { IDENTITY_CACHE_MS } from '../../src/base/limits.ts'

export interface StandbyProbeOptions {
  readonly ports: readonly number[]
  readonly managementKey: string
  /** May create, read in the clear and delete tokens. */
  readonly key: string
  /** Called with what a wrong answer was about. */
  readonly onStale: (about: StaleAnswer, story: string) => void
}

export type StaleAnswer = 'missing' | 'deleted' | 'revoked' | 'transaction'

/** Ids of the tokens that probes leave behind begin so. */
export const PROBE_PREFIX = 'probe-'

interface ProbeReply {
  readonly status: number
  readonly body: JsonObject
}

interface ProbeQuestion {
  readonly about: StaleAnswer
  readonly ask: (port: number) => Promise<ProbeReply>
  readonly right: number
}

export class StandbyProbe {
  readonly #options: StandbyProbeOptions
  readonly #name: string
  #application: { readonly id: string; readonly key: string } | null = null
  /** Answers that were compared. */
  answers = 0

  constructor(options: StandbyProbeOptions, round: number) {
    this.#options = options
    this.#name = `${PROBE_PREFIX}${round}`
  }

  /** Before the event: makes a token to delete, and a key that every server has used. */
  async prepare(): Promise<void> {
    const { ports, managementKey } = this.#options
    await this.#make(ports[0]!, this.#doomed)
    const { body } = await this.#settled(ports[0]!, 'POST', '/applications', managementKey, {
      name: this.#name,
      type: 'private',
      permissions: ['token:create'],
    })
    this.#application = { id: body['id'] as string, key: body['key'] as string }
    for (const port of ports) await this.#invalid(port, this.#application.key)
  }

  /** Changes things through one server, and asks each about them. */
  async exercise(): Promise<void> {
    const { ports, managementKey, key } = this.#options
    const [one, other] = [ports[0]!, ports.at(-1)!]
    const fresh = `${this.#name}-fresh`
    await this.#make(other, fresh)
    await this.#settled(other, 'DELETE', `/tokens/${this.#doomed}`, key)
    const { id, key: revoked } = this.#application!
    await this.#settled(other, 'DELETE', `/applications/${id}`, managementKey)
    const opened = await this.#settled(other, 'POST', '/transactions', key)
    const transaction = opened.body['id'] as string
    // The other server may go on with what it knows of a key for so long.
    await sleep(IDENTITY_CACHE_MS * 2)
    const questions: ProbeQuestion[] = [
      { about: 'missing', right: 200, ask: (port) => this.#read(port, fresh) },
      { about: 'deleted', right: 404, ask: (port) => this.#read(port, this.#doomed) },
      { about: 'revoked', right: 401, ask: (port) => this.#invalid(port, revoked) },
      { about: 'transaction', right: 201, ask: (port) => this.#within(port, transaction) },
    ]
    // More at once than there are connections for reads, so that each of them is used.
    const all = Array.from({ length: AT_ONCE }, () => questions).flat()
    await Promise.all(ports.flatMap((port) => all.map((it) => this.#judge(it, port))))
    await this.#settled(one, 'POST', `/transactions/${transaction}/rollback`, key)
  }

  async #judge({ about, ask, right }: ProbeQuestion, port: number): Promise<void> {
    const { status } = await ask(port)
    this.answers++
    if (status !== right) this.#options.onStale(about, `${about}: ${status} (${this.#name})`)
  }

  get #doomed(): string {
    return `${this.#name}-doomed`
  }

  async #make(port: number, id: string): Promise<void> {
    await this.#settled(port, 'POST', '/tokens', this.#options.key, { type: 'token', data: id, id })
  }

  #read(port: number, id: string): Promise<ProbeReply> {
    return this.#settled(port, 'GET', `/tokens/${id}`, this.#options.key)
  }

  #within(port: number, transaction: string): Promise<ProbeReply> {
    const headers = { 'bt-transaction-id': transaction }
    const token = { type: 'token', data: 'in a transaction' }
    return this.#settled(port, 'POST', '/tokens', this.#options.key, token, headers)
  }

  /** Leaves no token behind: 400 shows that the key is good. */
  #invalid(port: number, key: string): Promise<ProbeReply> {
    return this.#settled(port, 'POST', '/tokens', key, { type: 'no such type', data: '' })
  }

  /** Repeats the request until its outcome is known. */
  async #settled(
    port: number,
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    key: string,
    body?: JsonObject,
    headers: Record<string, string> = {},
  ): Promise<ProbeReply> {
    for (;;) {
      const json = body === undefined ? {} : { 'content-type': 'application/json' }
      const answer = await request(`http://127.0.0.1:${port}${path}`, {
        method,
        headers: { 'bt-api-key': key, ...json, ...headers },
        body: body === undefined ? null : JSON.stringify(body),
      })
      const text = await answer.body.text()
      if (answer.statusCode < 500) {
        return { status: answer.statusCode, body: text === '' ? {} : JSON.parse(text) }
      }
      await sleep(REST_MS)
    }
  }
}

const AT_ONCE = 10
const REST_MS = 50
