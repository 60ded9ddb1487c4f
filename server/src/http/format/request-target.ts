/**
 * The request target, in the one form that routes, the proxy and the log know: the origin form, a path with a query.
 *
 * Forward proxies and some clients send the absolute form, `GET http://vault.example/tokens HTTP/1.1`. It names the
 * authority a second time. RFC 9112, section 3.2.2, has a server ignore `Host` then; but whatever is in front may have
 * gone by `Host`, so a target that names another authority is refused (decision 0052).
 */
import type { IncomingMessage } from 'node:http'
import { ServiceError } from '../../base/service-error.ts'

/** Rewrites an absolute target to origin form. To be called before routing; checkTarget() then refuses what has neither. */
export function normalizeTarget(message: IncomingMessage): void {
  const { url = '', method } = message
  if (url.startsWith('/') || (url === '*' && method === 'OPTIONS')) return
  const [all, scheme, authority] = ABSOLUTE.exec(url) ?? []
  if (all === undefined) {
    // The router would take it for a path without looking at its first character.
    message.url = '/'
    refused.add(message)
    return
  }
  const rest = url.slice(all.length)
  message.url = rest.startsWith('/') ? rest : `/${rest}`
  if (!isSame(scheme!.toLowerCase(), authority!, message.headers.host)) refused.add(message)
}

/** Throws `header_invalid` if the target was neither a path nor a URL of the host in `Host`. */
export function checkTarget(message: IncomingMessage): void {
  if (!refused.has(message)) return
  throw new ServiceError('header_invalid', {
    host: [
      'The request target does not match it: send the path alone, or an http URL of this host.',
    ],
  })
}

const refused = new WeakSet<IncomingMessage>()

/** The authority ends as in every URL; a backslash does not end it, so it is compared, and differs. */
const ABSOLUTE = /^([a-z][a-z0-9+.-]*):\/\/([^/?#]*)/i

/** Compares as RFC 3986, section 6.2.3: without case, and with default ports left out. Neither may have a user or no name. */
function isSame(scheme: string, authority: string, host: string | undefined): boolean {
  const defaultPort = DEFAULT_PORTS.get(scheme)
  if (defaultPort === undefined || host === undefined || authority.includes('@')) return false
  const name = withoutPort(authority, defaultPort)
  return name !== '' && !name.startsWith(':') && name === withoutPort(host, defaultPort)
}

/** Either may arrive: what terminates TLS in front may forward the target as it was. */
const DEFAULT_PORTS: ReadonlyMap<string, string> = new Map([
  ['http', '80'],
  ['https', '443'],
])

function withoutPort(authority: string, port: string): string {
  const at = authority.lastIndexOf(':')
  const given = at < 0 || authority.endsWith(']') ? null : authority.slice(at + 1)
  const folded = authority.toLowerCase()
  return given === '' || given === port ? folded.slice(0, at) : folded
}
