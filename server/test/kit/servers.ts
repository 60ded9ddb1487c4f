/**
 * The servers of a still vault, asked in turn: one, or two on one PostgreSQL database when SYMBOLON_TEST_SERVERS says `2`.
 *
 * Two have a store, a keyring and an app each, and nothing in common but the database, the clock and what a test looks at
 * afterwards. What one of them keeps in memory may be older than the truth by IDENTITY_CACHE_MS, so that long passes
 * before each request, for `elapsed` alone: the time of day, which tests compare, stands still. No cache is switched off
 * and none is told anything, so what a server believes for longer is found.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { AddressInfo } from 'node:net'
import type { App } from '../../src/app.ts'
import { IDENTITY_CACHE_MS } from '../../src/base/limits.ts'
import type { StillRunner } from './still-runner.ts'
import type { StillWorld } from './still-world.ts'

/** How many servers the run is about. */
export function serversAsked(): number {
  const asked = process.env['SYMBOLON_TEST_SERVERS'] ?? '1'
  if (asked !== '1' && asked !== '2') throw new Error('SYMBOLON_TEST_SERVERS is 1 or 2')
  return Number(asked)
}

export class Servers {
  readonly apps: readonly App[]
  readonly #clock: StillWorld['clock']
  #asked = 0

  constructor(apps: readonly App[], clock: StillWorld['clock']) {
    this.apps = apps
    this.#clock = clock
  }

  /** Whose turn it is. */
  next(): App {
    if (this.apps.length > 1) this.#clock.elapse(IDENTITY_CACHE_MS)
    return this.apps[this.#asked++ % this.apps.length]!
  }

  /** The one that runs the code which is asking; whose turn it is, when no code is. */
  inProcess(): App {
    const place = RUNNING.getStore()
    return place === undefined ? this.next() : this.apps[place]!
  }

  /** Has each listen on a port of its own. */
  async listen(host: string): Promise<void> {
    for (const it of this.apps) await it.listen({ host, port: 0 })
  }

  async close(): Promise<void> {
    await Promise.all(this.apps.map((it) => it.close()))
  }
}

/** Where it listens. */
export function portOf(app: App): number {
  return (app.server.address() as AddressInfo).port
}

/** The place of the server whose runner the code runs in. */
const RUNNING = new AsyncLocalStorage<number>()

/** Returns `runner` as the server at this place has it: an ephemeral key is good where it was issued. */
export function runnerAt(place: number, runner: StillRunner): StillRunner {
  const own = Object.create(runner) as StillRunner
  return Object.assign(own, {
    run: (job: Parameters<StillRunner['run']>[0]) => RUNNING.run(place, () => runner.run(job)),
  })
}
