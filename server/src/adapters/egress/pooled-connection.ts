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
 * One pooled connection to a destination, established or in progress, with one request at a time.
 *
 * Undici's client reconnects after a close, always through dial(). It follows no redirect, retries nothing that was
 * written, and speaks HTTP/1.1 only, so a request can neither read nor delay another one on the same connection.
 */
export class PooledConnection {
  readonly #client: Client
  readonly #informing = new InformationalFilter()
  readonly #reader: ThrottledReader
  #giveUp: (() => void) | null = null
  #dropped = false
  /** Whether it may carry another request after its first. */
  readonly reusable: boolean
  /** When its last request ended, by the clock of its pool; null while it is new, and once it has closed. */
  releasedAt: number | null = null

  /**
   * Calls `onClosed` when the connection has closed, with whether the destination did that without announcement; an idle one
   * is then useless.
   */
  constructor(
    target: Target,
    settings: DialSettings,
    memory: TlsMemory,
    { throttle, owner, reusable }: ReaderOptions & { readonly reusable: boolean },
    onClosed: (unannounced: boolean) => void,
  ) {
    this.reusable = reusable
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
      // The timekeeper enforces the timeouts of all calls.
      headersTimeout: 0,
      bodyTimeout: 0,
      useMilo: false,
    })
    this.#client.on('disconnect', (_origin, _clients, error) => {
      // Undici has another code for what it closes itself: after an announcement, and after the idle timeout.
      onClosed(!this.#dropped && error.code !== 'UND_ERR_INFO')
    })
  }

  get dropped(): boolean {
    return this.#dropped
  }

  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    this.#informing.expectHeaderSection()
    this.#reader.expectHeaderSection()
    this.#client.dispatch(options, handler)
  }

  /** Counts a chunk of the response, in bytes. */
  countChunk(bytes: number): void {
    this.#reader.count(bytes)
  }

  /** Closes the connection, or cancels the attempt to establish it. */
  drop(): void {
    this.#dropped = true
    this.#giveUp?.()
    void this.#client.destroy()
  }
}

/** The owner that reads, and the throttle that limits it. */
export interface ReaderOptions {
  readonly throttle: ReadThrottle
  readonly owner: string
}

function originOf({ endpoint }: Target): string {
  return `${endpoint.secure ? 'https' : 'http'}://${authorityOf(endpoint)}`
}
