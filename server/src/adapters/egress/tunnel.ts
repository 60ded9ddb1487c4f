import type { Duplex } from 'node:stream'
import { EGRESS_TUNNEL_MS_MAX } from '../../base/limits.ts'
import { EgressRefusal } from '../../ports/egress.ts'
import { dial, type DialSettings, type Target } from './dial.ts'
import { TlsTunnel } from './tls-tunnel.ts'

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

/** Resolves with a connection; the caller speaks its own protocol over it, which must be TLS for the target's name unless `plain`. Rejects with `aborted` once `signal` is aborted. */
export function dialTunnel(
  target: Target,
  settings: DialSettings,
  plain: boolean,
  signal: AbortSignal,
): Promise<Duplex> {
  const { promise, resolve, reject } = Promise.withResolvers<Duplex>()
  const asDialled = { ...target, endpoint: { ...target.endpoint, secure: false } }
  const permits: DialSettings['permits'] = (_, address) =>
    settings.permits(target.endpoint, address)
  const abort = (): void => giveUp()
  const timer = setTimeout(abort, EGRESS_TUNNEL_MS_MAX)
  signal.addEventListener('abort', abort)
  const giveUp = dial(
    asDialled,
    { ...settings, permits, readAheadBytes: 1 },
    { session: undefined },
    (error, socket) => {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
      if (error !== null) reject(error)
      else resolve(plain ? socket : new TlsTunnel(socket, nameOf(target)))
    },
  )
  if (signal.aborted) abort()
  return promise
}

/** Returns the name that a client must ask for; null for an address. */
function nameOf({ endpoint }: Target): string | null {
  return endpoint.literal === null ? endpoint.host : null
}
