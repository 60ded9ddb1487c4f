import { Client, type Dispatcher } from 'undici'
import {
  EGRESS_HEADER_SECTION_BYTES_MAX,
  EGRESS_IDLE_MARGIN_MS,
  EGRESS_IDLE_MS,
  EGRESS_IDLE_MS_MAX,
} from '../../base/limits.ts'
import type { ReadThrottle } from '../../base/read-throttle.ts'
import { dial, type DialSettings, type Target, type TlsMemory } from './dial.ts'
import { InformationalFilter } from './informational-filter.ts'
import { ThrottledReader } from './throttled-reader.ts'
import { authorityOf } from './egress-endpoint.ts'

/**
 * One pooled connection to a destination, or the making of it, and one request at a time on it.
 *
 * The client of undici makes a new connection when the last one is closed, always by our own dial(). It follows
 * no redirect, retries nothing that was written, and speaks HTTP/1.1 alone: one request cannot be heard or
 * delayed by another on the same connection.
 */
export class PooledConnection {
  readonly #client: Client
  readonly #informing = new InformationalFilter()
  readonly #reader: ThrottledReader
  #giveUp: (() => void) | null = null
  #dropped = false

  /** `onIdle` is called when the connection was closed; an idle one is then good for nothing. */
  constructor(
    target: Target,
    settings: DialSettings,
    memory: TlsMemory,
    { throttle, owner }: ReaderOptions,
    onClosed: () => void,
  ) {
    this.#reader = new ThrottledReader(throttle, owner)
    this.#client = new Client(originOf(target), {
      connect: (_, callback) => {
        this.#giveUp = dial(target, settings, memory, (error, socket) => {
          this.#giveUp = null
          if (error === null) callback(null, this.#informing.attach(this.#reader.attach(socket)))
          else callback(error, null)
        })
      },
      allowH2: false,
      pipelining: 1,
      maxHeaderSize: EGRESS_HEADER_SECTION_BYTES_MAX,
      strictContentLength: true,
      keepAliveTimeout: EGRESS_IDLE_MS,
      keepAliveMaxTimeout: EGRESS_IDLE_MS_MAX,
      keepAliveTimeoutThreshold: EGRESS_IDLE_MARGIN_MS,
      // Time is kept for all calls together, by the timekeeper.
      headersTimeout: 0,
      bodyTimeout: 0,
      useMilo: false,
    })
    this.#client.on('disconnect', onClosed)
  }

  get dropped(): boolean {
    return this.#dropped
  }

  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    this.#informing.expectHeaderSection()
    this.#reader.expectHeaderSection()
    this.#client.dispatch(options, handler)
  }

  /** Takes note of a chunk of the answer, of so many bytes. */
  countChunk(bytes: number): void {
    this.#reader.count(bytes)
  }

  /** Ends the connection, and the attempt to make one. */
  drop(): void {
    this.#dropped = true
    this.#giveUp?.()
    void this.#client.destroy()
  }
}

/** Who reads, and when. */
export interface ReaderOptions {
  readonly throttle: ReadThrottle
  readonly owner: string
}

function originOf({ endpoint }: Target): string {
  return `${endpoint.secure ? 'https' : 'http'}://${authorityOf(endpoint)}`
}
