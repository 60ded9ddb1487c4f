import { connect as connectSocket, type Socket } from 'node:net'
import { connect as connectTls, type SecureContext, type TLSSocket } from 'node:tls'
import { EGRESS_CONNECT_MS_MAX } from '../../base/limits.ts'
import { parseIpAddress } from '../../base/ip-address.ts'
import { EgressFailure } from '../../ports/egress.ts'
import type { EgressEndpoint } from './egress-endpoint.ts'
import { hintOfHandshake } from './faults.ts'

/** A vetted destination, with its addresses: no further lookup is needed. */
export interface Target {
  readonly endpoint: EgressEndpoint
  /** In the order to try them. */
  readonly addresses: readonly string[]
}

export interface DialSettings {
  readonly trust: () => SecureContext
  /** Checks every address again, right before it is dialled. */
  readonly permits: (endpoint: EgressEndpoint, address: string) => boolean
  /**
   * Bytes that are read ahead of the reader. With 1, at most a chunk is: a chunk takes some 300 bytes besides its own, so that a
   * destination that sends byte by byte costs 300 times what it may with the default of 64 KiB.
   */
  readonly readAheadBytes?: number
}

/** TLS session to resume with one destination; kept with its pool, never shared. */
export interface TlsMemory {
  session: Buffer | undefined
}

export type DialCallback = (
  ...result: [error: Error, socket: null] | [error: null, socket: Socket]
) => void

/**
 * Makes every outbound connection: to an address, never to a name, so that no second lookup can change the target (DNS
 * rebinding).
 *
 * Calls `done` once, with a connection to the first address that accepts one, or with EgressFailure. Returns a function
 * that cancels; `done` is then called with `aborted`.
 */
export function dial(
  { endpoint, addresses }: Target,
  { trust, permits, readAheadBytes }: DialSettings,
  memory: TlsMemory,
  done: DialCallback,
): () => void {
  let socket: Socket | null = null
  let timer: NodeJS.Timeout | undefined
  let over = false
  tryAddress(0)
  return () => finish(new EgressFailure('aborted'))

  function tryAddress(index: number): void {
    const address = addresses[index]!
    if (!permits(endpoint, address)) {
      finish(new EgressFailure('unreachable', { cause: new Error('The address is forbidden') }))
      return
    }
    const last = index + 1 >= addresses.length
    const raw = connectSocket({
      host: address,
      port: endpoint.port,
      autoSelectFamily: false,
      ...(readAheadBytes !== undefined && { readableHighWaterMark: readAheadBytes }),
    })
    socket = raw
    const next = (cause: Error): void => {
      clearTimeout(timer)
      raw.off('error', next).off('connect', connected).on('error', ignore).destroy()
      if (last) finish(new EgressFailure('unreachable', { cause }))
      else tryAddress(index + 1)
    }
    const connected = (): void => {
      clearTimeout(timer)
      raw.off('error', next)
      if (!isSame(raw.remoteAddress, address)) {
        const cause = new Error('The connection leads to another address')
        finish(new EgressFailure('unreachable', { cause }))
      } else if (endpoint.secure) secure(raw, address)
      else finish(null)
    }
    raw.once('error', next).once('connect', connected)
    // For the last address, the call's own timeout applies.
    if (!last)
      timer = setTimeout(
        () => next(new Error('The address did not accept the connection in time')),
        EGRESS_CONNECT_MS_MAX,
      )
  }

  function secure(raw: Socket, address: string): void {
    // Without a server name, the certificate must be valid for the address.
    const name = endpoint.literal === null ? endpoint.host : ''
    const tls = connectTls({
      socket: raw,
      host: address,
      servername: name,
      // Also sets the minimum TLS version.
      secureContext: trust(),
      rejectUnauthorized: true,
      ALPNProtocols: ['http/1.1'],
      ...(memory.session === undefined ? {} : { session: memory.session }),
    })
    socket = tls
    const failed = (cause: Error): void => {
      finish(new EgressFailure('tls', { cause, hint: hintOfHandshake(cause) }))
    }
    const closed = (): void => failed(new Error('The connection was closed'))
    tls.once('error', failed).once('close', closed)
    tls.once('secureConnect', () => {
      tls.off('error', failed).off('close', closed)
      rememberSession(tls, memory)
      finish(null)
    })
  }

  function finish(error: Error | null): void {
    if (over) return
    over = true
    clearTimeout(timer)
    if (error === null) {
      done(null, socket!.setNoDelay(true).setKeepAlive(true, KEEP_ALIVE_PROBE_MS))
      return
    }
    socket?.on('error', ignore).destroy()
    done(error, null)
  }
}

const KEEP_ALIVE_PROBE_MS = 60_000

/**
 * Stores sessions only after the certificate and its name were verified: a resumed session is not checked for its name
 * again.
 */
function rememberSession(tls: TLSSocket, memory: TlsMemory): void {
  if (tls.getProtocol() === 'TLSv1.2') memory.session = tls.getSession()
  tls.on('session', (session: Buffer) => {
    memory.session = session
  })
}

/** Compares addresses regardless of notation. */
function isSame(one: string | undefined, other: string): boolean {
  const [a, b] = [parseIpAddress(one ?? ''), parseIpAddress(other)]
  return a !== null && b !== null && a.version === b.version && a.value === b.value
}

function ignore(): void {}
