import type { Duplex } from 'node:stream'
import { isJsonObject, type Json } from '../../base/json.ts'
import { EgressFailure, EgressRefusal } from '../../ports/egress.ts'
import type { SandboxRun } from '../../ports/reactor-runner.ts'
import { CONNECTIONS_MAX, FRAME, numberedFrame, WINDOW_BYTES, type Frame } from './guest/frames.ts'
import { SERVICE } from './guest/messages.ts'

/** The tenant a connection is opened for, and the destinations it may reach. */
export type Whose = Pick<SandboxRun, 'tenantId' | 'destinations'>

/** The only ways out of the jail. Both reject with an error for the guest. */
export interface WaysOut {
  /** Opens a connection to an allowed destination. */
  toHost(whose: Whose, host: string, port: number): Promise<Duplex>
  /** Opens a connection to the service itself. */
  toService(whose: Whose): Promise<Duplex>
}

/**
 * Relays bytes between a guest and the outside. The guest asks for a host and port, and gets a connection or a refusal.
 * Per connection and direction, at most one window of bytes is buffered here.
 */
export class Broker {
  readonly #ways: WaysOut
  readonly #send: (frame: Buffer) => void
  readonly #open = new Map<number, RelayedConnection>()

  constructor(ways: WaysOut, send: (frame: Buffer) => void) {
    this.#ways = ways
    this.#send = send
  }

  /** Handles a frame; throws when it breaks the protocol. Without a run in progress (`whose` is null), refuses to open. */
  take(whose: Whose | null, { kind, payload }: Frame): void {
    const number = payload.readUInt32BE(0)
    const content = payload.subarray(4)
    const relayed = this.#open.get(number)
    if (kind === FRAME.open) {
      if (relayed !== undefined) throw new Error('A connection that there is already')
      this.#begin(whose, number, content)
    } else if (relayed !== undefined) relayed.take(kind, content)
    // Frames for a closed connection: the guest may not know yet that it is closed.
    else if (kind < FRAME.data || kind > FRAME.close) throw new Error('A kind that there is not')
  }

  closeAll(): void {
    for (const it of this.#open.values()) it.close('')
  }

  #begin(whose: Whose | null, number: number, content: Buffer): void {
    const { host, port } = parseConnectionTarget(content)
    const sendFrame = (kind: number, text: string | Uint8Array = ''): void => {
      if (this.#open.get(number) !== relayed) return
      if (kind === FRAME.close || kind === FRAME.refused) this.#open.delete(number)
      this.#send(numberedFrame(kind, number, text))
    }
    const relayed = new RelayedConnection(sendFrame)
    if (whose === null || this.#open.size >= CONNECTIONS_MAX) {
      const reason = whose === null ? 'The run is over' : 'Too many connections are open'
      this.#send(numberedFrame(FRAME.refused, number, reason))
      return
    }
    this.#open.set(number, relayed)
    const own = host === SERVICE.host && port === SERVICE.port
    const way = own ? this.#ways.toService(whose) : this.#ways.toHost(whose, host, port)
    way.then(
      (it) => relayed.begin(it),
      (error: unknown) => sendFrame(FRAME.refused, reasonOf(error)),
    )
  }
}

/** One relayed connection. */
class RelayedConnection {
  readonly #sendFrame: (kind: number, content?: string | Uint8Array) => void
  #outside: Duplex | null = null
  #early: Buffer[] = []
  #finished = false
  #closed = false
  /** Bytes the guest may still send before it gets more credit, and bytes it still accepts. */
  #inward = WINDOW_BYTES
  #outward = WINDOW_BYTES

  constructor(sendFrame: (kind: number, content?: string | Uint8Array) => void) {
    this.#sendFrame = sendFrame
  }

  begin(outside: Duplex): void {
    outside.on('error', () => this.close('The connection was reset'))
    if (this.#closed) {
      outside.destroy()
      return
    }
    this.#outside = outside
    outside.on('readable', () => this.#pump())
    outside.once('end', () => this.#sendFrame(FRAME.finish))
    outside.once('close', () => this.close(''))
    this.#sendFrame(FRAME.opened)
    for (const it of this.#early.splice(0)) this.#write(it)
    if (this.#finished) outside.end()
  }

  take(kind: number, content: Buffer): void {
    if (kind === FRAME.data) {
      this.#inward -= content.length
      if (this.#inward < 0 || this.#finished) throw new Error('More than the window allows')
      if (this.#outside === null) this.#early.push(Buffer.from(content))
      else this.#write(content)
    } else if (kind === FRAME.credit) {
      this.#outward += content.readUInt32BE(0)
      if (this.#outward > WINDOW_BYTES) throw new Error('More credit than the window has')
      this.#pump()
    } else if (kind === FRAME.finish) {
      this.#finished = true
      this.#outside?.end()
    } else if (kind === FRAME.close) this.close('')
    else throw new Error('A kind that there is not')
  }

  close(reason: string): void {
    if (this.#closed) return
    this.#closed = true
    this.#early = []
    this.#outside?.destroy()
    this.#sendFrame(FRAME.close, reason)
  }

  #write(chunk: Buffer): void {
    this.#outside!.write(chunk, (error) => {
      if (error) return
      this.#inward += chunk.length
      const amount = Buffer.allocUnsafe(4)
      amount.writeUInt32BE(chunk.length)
      this.#sendFrame(FRAME.credit, amount)
    })
  }

  #pump(): void {
    while (this.#outside !== null && this.#outward > 0) {
      const available = Math.min(this.#outward, this.#outside.readableLength)
      const chunk: Buffer | null = this.#outside.read(available > 0 ? available : undefined)
      if (chunk === null) return
      this.#outward -= chunk.length
      this.#sendFrame(FRAME.data, chunk)
    }
  }
}

/** Throws when the content is not a host and port. */
function parseConnectionTarget(content: Buffer): { host: string; port: number } {
  if (content.length > CONNECTION_TARGET_BYTES_MAX) throw new Error('A long name')
  const json: Json = JSON.parse(content.toString())
  if (!isJsonObject(json)) throw new Error('No destination')
  const { host, port } = json
  if (typeof host !== 'string' || typeof port !== 'number') throw new Error('No destination')
  return { host, port }
}

const CONNECTION_TARGET_BYTES_MAX = 1024

/** Fixed messages: the guest must not learn what a name resolves to. */
function reasonOf(error: unknown): string {
  if (error instanceof EgressRefusal) return `Refused by the rule on ${error.rule}`
  if (error instanceof EgressFailure) return `The destination cannot be used: ${error.fault}`
  return 'The destination cannot be used'
}
