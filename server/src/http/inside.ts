import { duplexPair, type Duplex } from 'node:stream'
import type { Server } from './server.ts'

/** Which tenant's code is at the other end, by connection. */
const TENANTS = new WeakMap<object, string>()

/**
 * Returns a connection to `server` for code of a tenant that the service runs itself: no network lies between, so it
 * works wherever the server listens, and nobody else can be at its other end.
 */
export function connectInside(server: Server, tenantId: string): Duplex {
  const [far, near] = duplexPair()
  TENANTS.set(near, tenantId)
  // Either end takes the other along, as those of a socket do.
  far.once('close', () => near.destroy())
  near.once('close', () => far.destroy())
  server.server.emit('connection', near)
  return far
}

/** Returns the tenant whose code, run by the service, sent what came over `connection`; null for the network. */
export function tenantInside(connection: object): string | null {
  return TENANTS.get(connection) ?? null
}
