import type { Duplex } from 'node:stream'
import { isJsonObject } from '../../base/json.ts'
import { parseBoundedJson } from '../../base/strict-json.ts'
import type { SandboxRun } from '../../ports/reactor-runner.ts'
import { CONNECTIONS_MAX, FRAME, numberedFrame, type Frame } from './guest/frames.ts'
import { SERVICE } from './guest/messages.ts'
import { RelayedConnection } from './relayed-connection.ts'

/** The tenant a connection is opened for, and the destinations it may reach. */
export type Whose = Pick<SandboxRun, 'tenantId' | 'destinations'>

/** The only ways out of the jail. Both reject with an error for the guest. */
export interface WaysOut {
  /** Opens a connection to an allowed destination. Rejects soon after `signal` is aborted. */
  toHost(whose: Whose, host: string, port: number, signal: AbortSignal): Promise<Duplex>
  /** Opens a connection to the service itself. */
  toService(whose: Whose): Promise<Duplex>
}

/** The way to the guest. */
export interface FrameSender {
  /** Whether the guest has read enough to be sent more data. */
  readonly congested: boolean
  /** Calls `flushed` once the frame has left this process. */
  send(frame: Buffer, flushed?: () => void): void
}

/**
 * Relays bytes between a guest and the outside. The guest asks for a host and port, and gets a connection or a refusal.
 *
 * Every connection takes one of CONNECTIONS_MAX slots until nothing is left of it here; only then the guest gets its `close`
 * frame. A guest waits for a free slot by itself, so one that asks for more is killed.
 */
export class Broker {
  readonly #ways: WaysOut
  readonly #guest: FrameSender
  readonly #connections = new Map<number, RelayedConnection>()

  constructor(ways: WaysOut, guest: FrameSender) {
    this.#ways = ways
    this.#guest = guest
  }

  /** Handles a frame; throws when it breaks the protocol. Without a run in progress (`whose` is null), refuses to open. */
  take(whose: Whose | null, { kind, payload }: Frame): void {
    const number = payload.readUInt32BE(0)
    const content = payload.subarray(4)
    const relayed = this.#connections.get(number)
    if (kind === FRAME.open) {
      if (relayed !== undefined) throw new Error('A connection that there is already')
      this.#begin(whose, number, content)
    } else if (relayed !== undefined) relayed.take(kind, content)
    // Frames for a closed connection: the guest may not know yet that it is closed.
    else if (kind < FRAME.data || kind > FRAME.close) throw new Error('A kind that there is not')
  }

  /** Passes on what waited while the guest was congested. */
  resume(): void {
    for (const it of this.#connections.values()) it.pump()
  }

  /** Closes all connections. Each keeps its slot until its dial has settled and its socket is closed. */
  closeAll(): void {
    for (const it of this.#connections.values()) it.close('')
  }

  #begin(whose: Whose | null, number: number, content: Buffer): void {
    const { host, port } = parseConnectionTarget(content)
    if (this.#connections.size >= CONNECTIONS_MAX) {
      throw new Error('More connections than there may be')
    }
    if (whose === null) {
      this.#guest.send(numberedFrame(FRAME.refused, number, 'The run is over'))
      return
    }
    const relayed = new RelayedConnection({
      send: (kind, sent, flushed) =>
        this.#guest.send(numberedFrame(kind, number, sent ?? ''), flushed),
      ready: () => !this.#guest.congested,
      gone: (kind, reason) => {
        this.#connections.delete(number)
        this.#guest.send(numberedFrame(kind, number, reason))
      },
    })
    this.#connections.set(number, relayed)
    const own = host === SERVICE.host && port === SERVICE.port
    void relayed.begin((signal) =>
      own ? this.#ways.toService(whose) : this.#ways.toHost(whose, host, port, signal),
    )
  }
}

/** Throws when the content is not a host and port. */
function parseConnectionTarget(content: Buffer): { host: string; port: number } {
  if (content.length > CONNECTION_TARGET_BYTES_MAX) throw new Error('A long name')
  const json = parseBoundedJson(content)
  if (!isJsonObject(json)) throw new Error('No destination')
  const { host, port } = json
  if (typeof host !== 'string' || typeof port !== 'number') throw new Error('No destination')
  return { host, port }
}

const CONNECTION_TARGET_BYTES_MAX = 1024
