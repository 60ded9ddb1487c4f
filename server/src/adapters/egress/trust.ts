import { X509Certificate } from 'node:crypto'
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls'

/**
 * Returns the TLS trust of outbound connections: the machine's authorities, or Node's bundled ones if it has none, and
 * `extra`.
 *
 * All connections share one context, because creating one parses every certificate again, for 20 ms.
 */
export function trustOf(extra: readonly string[]): SecureContext {
  const key = extra.join('\n')
  const known = contexts.get(key) ?? createTrust(extra)
  contexts.set(key, known)
  return known
}

/** By the extra authorities: a service has one list, and tests open many gateways with the same. */
const contexts = new Map<string, SecureContext>()

function createTrust(extra: readonly string[]): SecureContext {
  // A list of authorities replaces the default, so it must be complete.
  const system = getCACertificates('system')
  const ca = [...(system.length > 0 ? system : getCACertificates('bundled')), ...extra]
  return createSecureContext({ ca, minVersion: 'TLSv1.2' })
}

/** Returns the certificates in the text of a PEM file, if any. Throws when one cannot be parsed. */
export function parseCertificates(pem: string): string[] {
  const found = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? []
  return found.map((it) => new X509Certificate(it).toString())
}
