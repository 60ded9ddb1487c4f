import { X509Certificate } from 'node:crypto'
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls'

/**
 * Whom we believe that a destination is who it says: the authorities of this machine and `extra`, and with a
 * machine that has none those that Node brings along.
 *
 * One context serves every connection: to make one reads each of the authorities again.
 */
export function createTrust(extra: readonly string[]): SecureContext {
  // A list of authorities replaces the default one, so it has to be all of them.
  const system = getCACertificates('system')
  const ca = [...(system.length > 0 ? system : getCACertificates('bundled')), ...extra]
  return createSecureContext({ ca, minVersion: 'TLSv1.2' })
}

/** Returns the certificates that a PEM file's text has, none if there is none. Throws for one that cannot be read. */
export function parseCertificates(pem: string): string[] {
  const found = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? []
  return found.map((it) => new X509Certificate(it).toString())
}
