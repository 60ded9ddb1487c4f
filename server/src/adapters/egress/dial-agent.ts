import type { Duplex } from 'node:stream'
import { EGRESS_IDLE_MS } from '../../base/limits.ts'
import { http } from '../../base/node-http.ts'
import { dial, type DialSettings, type Target, type TlsMemory } from './dial.ts'

/** The call for which a connection is made; it may stop wanting it. */
export interface DialCall {
  giveUp: (() => void) | null
}

/**
 * Keeps connections for Node's own client, each made by dial().
 *
 * An agent has settings of its own for what may be dialled; they are not used, since that for TLS is not enforced.
 */
export class DialAgent extends http.Agent {
  readonly #target: Target
  readonly #settings: DialSettings
  readonly #memory: TlsMemory

  constructor(target: Target, settings: DialSettings, memory: TlsMemory) {
    // The time limit ends idle connections; the destination's own hint shortens it.
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
