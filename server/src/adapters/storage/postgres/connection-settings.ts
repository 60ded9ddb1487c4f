import { readFileSync } from 'node:fs'
import { isIP, isIPv4 } from 'node:net'
import type { ClientConfig } from 'pg'
import { ADDRESS, parseDatabaseUrl } from './database-url.ts'
import { ServerList } from './server-list.ts'
import type { SessionTimeouts } from './session-settings.ts'

/** How to connect. The servers are shared by all connections with these settings. */
export interface ConnectionSettings extends Omit<
  ClientConfig,
  | 'host'
  | 'port'
  | 'ssl'
  | 'connectionString'
  | 'statement_timeout'
  | 'lock_timeout'
  | 'idle_in_transaction_session_timeout'
  | 'pipeline'
> {
  readonly servers: ServerList
  /** None by default. */
  readonly timeouts?: SessionTimeouts
  /** The file with the password, if the address has none. */
  readonly passwordFile?: string
}

/**
 * Returns connection settings for the database at `url`, which parseDatabaseUrl() reads.
 *
 * Over a network, traffic is encrypted and each server must prove its name: the default is `sslmode=verify-full`. TLS is
 * off only if the address says `disable`, or a host is this machine or a socket (`host=/run/postgresql`) and there is no
 * `sslrootcert`, a PEM file of authorities to trust instead of the system's. Throws an Error with a message for the
 * operator, which never repeats the password.
 */
export function connectionSettings(url: string): ConnectionSettings {
  const { hosts, user, password, database, parameters } = parseDatabaseUrl(url)
  const sslFor = tlsSettings(parameters)
  const passwordFile = parameters.get('passfile')
  return {
    servers: new ServerList(
      hosts.map(({ host, port }) => ({
        host,
        ...(port === null ? {} : { port }),
        ssl: sslFor(host),
      })),
    ),
    ...(user === null ? {} : { user }),
    // A function: whatever prints the settings does not show what it returns.
    ...(password === null ? {} : { password: () => password }),
    ...(passwordFile === null ? {} : { passwordFile }),
    database,
    application_name: parameters.get('application_name') ?? 'symbolon',
  }
}

/** Returns the file of authorities that the address names, or null, also for an address that cannot be read. */
export function authorityFileOf(url: string): string | null {
  try {
    return parseDatabaseUrl(url).parameters.get('sslrootcert')
  } catch {
    return null
  }
}

/** Returns the file that the password comes from, or null if the address has one or cannot be read. */
export function passwordFileOf(url: string): string | null {
  try {
    const { password, parameters } = parseDatabaseUrl(url)
    return password === null ? parameters.get('passfile') : null
  } catch {
    return null
  }
}

/** Returns the TLS settings by host. Reads the file of authorities once: it may be a pipe. */
function tlsSettings(parameters: URLSearchParams): (host: string) => ClientConfig['ssl'] {
  const file = parameters.get('sslrootcert')
  const given = parameters.get('sslmode')
  if (given !== null && given !== 'verify-full' && given !== 'disable') {
    throw new Error(`${ADDRESS} must have sslmode verify-full or disable, not '${given}'`)
  }
  const ca = file === null || given === 'disable' ? {} : { ca: readAuthority(file) }
  return (host) => {
    // Naming authorities requests verification, even of a server reached through a local tunnel.
    const plain = isHere(host) && file === null
    if ((given ?? (plain ? 'disable' : 'verify-full')) === 'disable') return false
    return {
      rejectUnauthorized: true,
      minVersion: 'TLSv1.2',
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ...ca,
    }
  }
}

function readAuthority(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    throw new Error(`${ADDRESS} has an sslrootcert, '${file}', that cannot be read`, { cause })
  }
}

/** Whether `host` is a socket, or a name or address of this machine alone. */
export function isHere(host: string): boolean {
  if (isIPv4(host)) return host.startsWith('127.')
  return host.startsWith('/') || host === 'localhost' || host === '::1'
}
