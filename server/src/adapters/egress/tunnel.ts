import type { Socket } from 'node:net'
import { EGRESS_TUNNEL_MS_MAX } from '../../base/limits.ts'
import { EgressFailure, EgressRefusal } from '../../ports/egress.ts'
import { dial, type DialSettings, type Target } from './dial.ts'

/**
 * Returns the URL of a tunnel's destination, to be vetted like any other. Throws EgressRefusal for an invalid host or
 * port.
 */
export function tunnelUrl(host: string, port: number): URL {
  if (!Number.isInteger(port) || port < 1 || port > 65_535) throw new EgressRefusal('port')
  const written = host.includes(':') ? `[${host}]` : host
  if (!HOST.test(host) || !URL.canParse(`https://${written}`)) throw new EgressRefusal('host')
  return new URL(`https://${written}:${port}`)
}

/** Characters of names and addresses; none has another meaning in a URL. */
const HOST = /^[A-Za-z0-9_.:-]+$/

/** Resolves with a raw connection; the caller speaks its own protocol over it. Rejects with `aborted` once `signal` is aborted. */
export function dialTunnel(
  target: Target,
  settings: DialSettings,
  plain: boolean,
  signal: AbortSignal,
): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  const asDialled = { ...target, endpoint: { ...target.endpoint, secure: false } }
  const permits: DialSettings['permits'] = (_, address) =>
    settings.permits(target.endpoint, address)
  const abort = (): void => giveUp()
  const timer = setTimeout(abort, EGRESS_TUNNEL_MS_MAX)
  signal.addEventListener('abort', abort)
  const giveUp = dial(
    asDialled,
    { ...settings, permits },
    { session: undefined },
    (error, socket) => {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
      if (error !== null) reject(error)
      else resolve(plain ? socket : holdToTls(socket))
    },
  )
  if (signal.aborted) abort()
  return promise
}

/** Closes the connection unless the first bytes sent begin a TLS handshake, in a single write or a vectored one. */
function holdToTls(socket: Socket): Socket {
  socket._write = (chunk: Buffer, encoding, done) => {
    letGo()
    if (beginsHandshake(chunk)) socket._write(chunk, encoding, done)
    else done(new EgressFailure('tls'))
  }
  socket._writev = (chunks, done) => {
    letGo()
    if (beginsHandshake(chunks[0]!.chunk)) socket._writev!(chunks, done)
    else done(new EgressFailure('tls'))
  }
  return socket

  /** Restores the socket's own methods. */
  function letGo(): void {
    Reflect.deleteProperty(socket, '_write')
    Reflect.deleteProperty(socket, '_writev')
  }
}

/** Whether `bytes` begin a TLS record with a ClientHello. Source: RFC 8446, sections 4 and 5.1. */
function beginsHandshake(bytes: Buffer): boolean {
  const [kind, major, minor, high, low, message = CLIENT_HELLO] = bytes
  if (low === undefined || kind !== TLS_HANDSHAKE || major !== 3 || minor! > 4) return false
  return high! * 256 + low <= RECORD_BYTES_MAX && message === CLIENT_HELLO
}

const TLS_HANDSHAKE = 22
const CLIENT_HELLO = 1
const RECORD_BYTES_MAX = 2 ** 14
