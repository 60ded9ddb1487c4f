import type { Socket } from 'node:net'
import { EGRESS_TUNNEL_MS_MAX } from '../../base/limits.ts'
import { EgressFailure, EgressRefusal } from '../../world/egress.ts'
import { dial, type DialSettings, type Target } from './dial.ts'

/**
 * Returns the URL whose destination a tunnel to `host` and `port` has, to be judged like any other. Throws
 * EgressRefusal for what is neither.
 */
export function tunnelUrl(host: string, port: number): URL {
  if (!Number.isInteger(port) || port < 1 || port > 65_535) throw new EgressRefusal('port')
  const written = host.includes(':') ? `[${host}]` : host
  if (!HOST.test(host) || !URL.canParse(`https://${written}`)) throw new EgressRefusal('host')
  return new URL(`https://${written}:${port}`)
}

/** What may stand in a name or an address: nothing that means something else in a URL. */
const HOST = /^[A-Za-z0-9_.:-]+$/

/** Resolves with a connection as it was dialled; what is said over it is its user's. */
export function dialTunnel(
  target: Target,
  settings: DialSettings,
  plain: boolean,
): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  const asDialled = { ...target, place: { ...target.place, secure: false } }
  const permits: DialSettings['permits'] = (_, address) => settings.permits(target.place, address)
  const timer = setTimeout(() => giveUp(), EGRESS_TUNNEL_MS_MAX)
  const giveUp = dial(
    asDialled,
    { ...settings, permits },
    { session: undefined },
    (error, socket) => {
      clearTimeout(timer)
      if (error !== null) reject(error)
      else resolve(plain ? socket : holdToTls(socket))
    },
  )
  return promise
}

/** Ends a connection whose first byte out does not begin a handshake. */
function holdToTls(socket: Socket): Socket {
  const write = socket._write.bind(socket)
  socket._write = (chunk: Buffer, encoding, done) => {
    socket._write = write
    if (chunk[0] === TLS_HANDSHAKE) write(chunk, encoding, done)
    else done(new EgressFailure('tls'))
  }
  return socket
}

const TLS_HANDSHAKE = 22
