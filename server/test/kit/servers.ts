/**
 * The servers of a still vault, called in turn: one, or two on one PostgreSQL database if SYMBOLON_TEST_SERVERS is `2`.
 *
 * Two servers have a store, a keyring and an app each, and share only the database, the clock and the records that tests
 * inspect. A server's caches may be stale by up to IDENTITY_CACHE_MS, so that much time passes before each request, for
 * `elapsed` alone: the time of day, which tests compare, stands still. No cache is disabled or notified, so a cache that is
 * stale for longer is detected.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { AddressInfo } from 'node:net'
import type { App } from '../../src/app.ts'
import { IDENTITY_CACHE_MS } from '../../src/base/limits.ts'
import type { StillRunner } from './still-runner.ts'
import type { StillWorld } from './still-world.ts'

/** Returns the number of servers the run uses. */
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

  /** Returns the server whose turn it is. */
  next(): App {
    this.expireCaches()
    return this.apps[this.#asked++ % this.apps.length]!
  }

  /** Passes the time after which a server knows what another one changed. */
  expireCaches(): void {
    if (this.apps.length > 1) this.#clock.elapse(IDENTITY_CACHE_MS)
  }

  /** Returns the server that runs the calling code; if no code is running, the one whose turn it is. */
  inProcess(): App {
    const place = RUNNING.getStore()
    return place === undefined ? this.next() : this.apps[place]!
  }

  /** Makes each listen on its own port. */
  async listen(host: string): Promise<void> {
    for (const it of this.apps) await it.listen({ host, port: 0 })
  }

  async close(): Promise<void> {
    await Promise.all(this.apps.map((it) => it.close()))
  }
}

/** Returns the port it listens on. */
export function portOf(app: App): number {
  return (app.server.address() as AddressInfo).port
}

/** The index of the server whose runner runs the current code. */
const RUNNING = new AsyncLocalStorage<number>()

/** Returns `runner` as seen by the server at this index: an ephemeral key is valid only where it was issued. */
export function runnerAt(place: number, runner: StillRunner): StillRunner {
  const own = Object.create(runner) as StillRunner
  return Object.assign(own, {
    run: (...run: Parameters<StillRunner['run']>) => RUNNING.run(place, () => runner.run(...run)),
  })
}
