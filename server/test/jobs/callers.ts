import { setTimeout as sleep } from 'node:timers/promises'
import type { Dice } from '../../crash/dice.ts'
import type { JsonObject } from '../../src/base/json.ts'
import type { AcceptedJob } from './judge.ts'

/** Callers that invoke a reactor asynchronously, and the responses they got. */
export class Callers {
  readonly accepted = new Map<number, AcceptedJob>()
  readonly #dice: Dice
  readonly #receiverPort: number
  readonly #rerunAll: boolean
  /** Jobs whose callers got no response: they repeat the request with the same key. */
  readonly #again: number[] = []
  #next = 1
  #keys = { management: '', caller: '' }
  #reactor = ''

  /** `rerunAll`: whether every job may be run again, and not one in five. */
  constructor(dice: Dice, receiverPort: number, rerunAll: boolean) {
    this.#dice = dice
    this.#receiverPort = receiverPort
    this.#rerunAll = rerunAll
  }

  /** Creates the reactor to invoke, in the unused vault at `url`. */
  async setUp(url: string, managementKey: string): Promise<void> {
    this.#keys = { management: managementKey, caller: '' }
    const application = await this.manage(url, 'POST', '/applications', {
      name: 'caller',
      type: 'private',
      permissions: ['token:create', 'token:use', 'token:read'],
    })
    const reactor = await this.manage(url, 'POST', '/reactors', {
      name: 'effect',
      configuration: {},
      code: `module.exports = async ({ args: { n } }) => {
        await fetch('https://localhost:${this.#receiverPort}/effect/' + n, { method: 'POST' })
        return { raw: { n }, tokenize: { type: 'token', data: 'made by ' + n } }
      }`,
    })
    this.#keys = { management: managementKey, caller: application['key'] as string }
    this.#reactor = reactor['id'] as string
  }

  /** Invokes one job after the other, each caller for as long as `goesOn` says, which hears whether the last was answered. */
  async load(
    url: () => string,
    goesOn: (answered: boolean) => boolean | Promise<boolean>,
  ): Promise<void> {
    const caller = async (): Promise<void> => {
      for (let answered = true; await goesOn(answered);) {
        answered = await this.#invoke(url(), this.#again.shift() ?? this.#next++)
        await sleep(this.#dice() * PAUSE_MS_MAX)
      }
    }
    await Promise.all(Array.from({ length: CALLERS }, caller))
  }

  /** Repeats requests until every caller has a response. */
  async askAgain(url: string): Promise<void> {
    while (this.#again.length > 0) await this.#invoke(url, this.#again.shift()!)
  }

  /** Returns whether the server was there; what it did not answer is asked again. */
  async #invoke(url: string, n: number): Promise<boolean> {
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
          callback_url: `https://localhost:${this.#receiverPort}/callback/${n}`,
          rerun_interrupted: rerun || this.#rerunAll,
        }),
      })
      if (reply.status === 202) {
        const id = reply.headers.get('bt-reactor-request-id')!
        this.accepted.set(n, { id, rerun })
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

  /** Secret that callbacks are signed with. */
  async secret(url: string): Promise<string> {
    const { secrets } = await this.manage(url, 'GET', '/callbacks/secret')
    return (secrets as { secret: string }[])[0]!.secret
  }

  /** Ids of dead letters. */
  async deadLetters(url: string): Promise<Set<string>> {
    const ids = new Set<string>()
    for (let start: string | undefined = ''; start !== undefined;) {
      const page = await this.manage(url, 'GET', `/callbacks?size=100&start=${start}`)
      for (const { id } of page['data'] as { id: string }[]) ids.add(id)
      start = (page['pagination'] as { next?: string }).next
    }
    return ids
  }

  /** How many tokens there are. */
  async tokens(url: string): Promise<number> {
    const page = await ask(url, this.#keys.caller, 'GET', '/tokens?size=1')
    return (page['pagination'] as { total_items: number }).total_items
  }

  async manage(url: string, method: string, path: string, body?: JsonObject) {
    return await ask(url, this.#keys.management, method, path, body)
  }
}

async function ask(url: string, key: string, method: string, path: string, body?: JsonObject) {
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

const CALLERS = 6
const RERUN_ONE_IN = 5
const PAUSE_MS_MAX = 20
