import { duplexPair, type Duplex } from 'node:stream'
import type { InProcessCaller } from '../base/access.ts'
import type { Server } from './server.ts'

/** Whose code is at the other end, by connection. */
const IN_PROCESS_CALLERS = new WeakMap<object, InProcessCaller>()

/**
 * Returns a connection to `server` for code of a tenant that the service runs itself: no network lies between, so it
 * works wherever the server listens, and nobody else can be at its other end.
 */
export function connectInProcess(server: Server, inProcessCaller: InProcessCaller): Duplex {
  const [far, near] = duplexPair()
  IN_PROCESS_CALLERS.set(near, inProcessCaller)
  // Either end takes the other along, as those of a socket do.
  far.once('close', () => near.destroy())
  near.once('close', () => far.destroy())
  server.server.emit('connection', near)
  return far
}

/** Returns whose code, run by the service, sent what came over `connection`; null for the network. */
export function inProcessCallerOf(connection: object): InProcessCaller | null {
  return IN_PROCESS_CALLERS.get(connection) ?? null
}
