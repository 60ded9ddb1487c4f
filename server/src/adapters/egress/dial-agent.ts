import type { Duplex } from 'node:stream'
import { EGRESS_IDLE_MS } from '../../base/limits.ts'
import { http } from '../../base/node-http.ts'
import { dial, type DialSettings, type Target, type TlsMemory } from './dial.ts'

/** The call that a connection is made for; it may cancel. */
export interface DialCall {
  giveUp: (() => void) | null
}

/**
 * Keeps connections for Node's own client, each made by dial().
 *
 * Does not use the agent's own options that restrict addresses: Node does not enforce them for TLS.
 */
export class DialAgent extends http.Agent {
  readonly #target: Target
  readonly #settings: DialSettings
  readonly #memory: TlsMemory

  constructor(target: Target, settings: DialSettings, memory: TlsMemory) {
    // The timeout closes idle connections; a keep-alive hint of the destination shortens it.
    super({ keepAlive: true, timeout: EGRESS_IDLE_MS })
    this.#target = target
    this.#settings = settings
    this.#memory = memory
  }

  override createConnection(
    options: object,
    callback?: (error: Error | null, socket: Duplex) => void,
  ): undefined {
    const { call } = options as { call: DialCall }
    call.giveUp = dial(this.#target, this.#settings, this.#memory, (...[error, socket]) => {
      call.giveUp = null
      callback?.(error, socket as Duplex)
    })
  }
}
