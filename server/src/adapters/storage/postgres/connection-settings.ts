import { readFileSync } from 'node:fs'
import { isIP, isIPv4 } from 'node:net'
import type { ClientConfig } from 'pg'

/** Begins every error message for the operator. */
const ADDRESS = 'The address of the database, SYMBOLON_DATABASE_URL,'

/** Parameters of the address that are supported; any other is probably a mistake, and refused. */
const KNOWN = new Set(['sslmode', 'sslrootcert', 'host', 'application_name'])

/**
 * Returns connection settings for the database at `url`: `postgres://user:password@host:port/name`.
 *
 * Over a network, traffic is encrypted and the server must prove its name: the default is `sslmode=verify-full`. TLS is
 * off only if the address says `disable`, or names this machine or a socket (`host=/run/postgresql`) and has no
 * `sslrootcert`, a PEM file of authorities to trust instead of the system's. Throws an Error with a message for the
 * operator, which never repeats the password.
 */
export function connectionSettings(url: string): ClientConfig {
  const address = parse(url)
  const { searchParams } = address
  for (const it of searchParams.keys()) {
    if (!KNOWN.has(it)) throw new Error(`${ADDRESS} must not have '${it}'`)
  }
  const host = searchParams.get('host') ?? withoutBrackets(address.hostname)
  const database = decoded(address.pathname.slice(1))
  if (database === '') throw new Error(`${ADDRESS} must name a database`)
  return {
    host,
    ...(address.port === '' ? {} : { port: Number(address.port) }),
    ...(address.username === '' ? {} : { user: decoded(address.username) }),
    ...(address.password === '' ? {} : { password: decoded(address.password) }),
    database,
    application_name: searchParams.get('application_name') ?? 'symbolon',
    ssl: sslOf(host, searchParams),
  }
}

function parse(url: string): URL {
  const address = URL.parse(url)
  if (address === null || !/^postgres(ql)?:$/.test(address.protocol)) {
    throw new Error(`${ADDRESS} must be postgres://user:password@host:port/name`)
  }
  return address
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new Error(`${ADDRESS} has a % that must be written %25`)
  }
}

function sslOf(host: string, parameters: URLSearchParams): ClientConfig['ssl'] {
  const file = parameters.get('sslrootcert')
  // Naming authorities requests verification, even of a server reached through a local tunnel.
  const plain = isHere(host) && file === null
  const mode = parameters.get('sslmode') ?? (plain ? 'disable' : 'verify-full')
  if (mode === 'disable') return false
  if (mode !== 'verify-full') {
    throw new Error(`${ADDRESS} must have sslmode verify-full or disable, not '${mode}'`)
  }
  return {
    rejectUnauthorized: true,
    minVersion: 'TLSv1.2',
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ...(file === null ? {} : { ca: readAuthority(file) }),
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

function withoutBrackets(host: string): string {
  return host.startsWith('[') ? host.slice(1, -1) : host
}
