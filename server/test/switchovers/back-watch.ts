import { setTimeout as sleep } from 'node:timers/promises'
import { request } from 'undici'
import { PROBE_PREFIX } from './standby-probe.ts'

/** Milliseconds until a server acknowledged a write, and until it was ready, for the last server to do so. */
export interface BackAgain {
  readonly how: string
  /** From when the primary was gone, which for a switchover includes the time that the test keeps an address behind. */
  readonly writesMs: number
  readonly readyMs: number
  /** From when the next primary could be reached. */
  readonly writesSinceReachableMs: number
}

/** Measures how long servers are away: asks each, over and over, once the primary is gone. */
export class BackWatch {
  readonly #ports: readonly number[]
  readonly #key: string
  readonly #round: number
  #measured: Promise<readonly [writes: number, ready: number]> | null = null
  #how = ''
  #goneAt = 0
  #reachableAt = 0

  constructor(ports: readonly number[], key: string, round: number) {
    this.#ports = ports
    this.#key = key
    this.#round = round
  }

  /** To be called when the primary is gone, with how. */
  gone(how: string): void {
    this.#how = how
    this.#goneAt = performance.now()
    this.#measured = this.#measure()
  }

  /** To be called when the next primary can be reached. */
  reachable(): void {
    this.#reachableAt = performance.now()
  }

  /** Resolves once every server has acknowledged a write and is ready. */
  async back(): Promise<BackAgain> {
    const [writes, ready] = await this.#measured!
    return {
      how: this.#how,
      writesMs: Math.round(writes - this.#goneAt),
      readyMs: Math.round(ready - this.#goneAt),
      writesSinceReachableMs: Math.max(0, Math.round(writes - this.#reachableAt)),
    }
  }

  async #measure(): Promise<readonly [writes: number, ready: number]> {
    const writes = this.#ports.map((port) => until(() => this.#writes(port)))
    const ready = this.#ports.map((port) => until(() => this.#isReady(port)))
    const [written, readied] = await Promise.all([Promise.all(writes), Promise.all(ready)])
    return [Math.max(...written), Math.max(...readied)]
  }

  async #writes(port: number): Promise<boolean> {
    const id = `${PROBE_PREFIX}${this.#round}-back-${port}`
    const { statusCode, body } = await request(`http://127.0.0.1:${port}/tokens`, {
      method: 'POST',
      headers: { 'bt-api-key': this.#key, 'content-type': 'application/json' },
      body: JSON.stringify({ type: 'token', data: id, id }),
    })
    await body.dump()
    // It is taken if an earlier attempt was made although its answer did not say so.
    return statusCode === 201 || statusCode === 409
  }

  async #isReady(port: number): Promise<boolean> {
    const { statusCode, body } = await request(`http://127.0.0.1:${port}/health/ready`)
    await body.dump()
    return statusCode === 200
  }
}

/** Resolves with the moment at which it holds. */
async function until(holds: () => Promise<boolean>): Promise<number> {
  while (!(await holds())) await sleep(REST_MS)
  return performance.now()
}

const REST_MS = 100
