import { duplexPair, type Duplex } from 'node:stream'
import type { InProcessCaller } from '../../base/access.ts'
import type { Server } from '../server.ts'
import { connectionState } from './connection-state.ts'

/**
 * Returns a connection to `server` for tenant code that the service runs itself. There is no network between, so it works
 * wherever the server listens, and only that code can be at the other end.
 */
export function connectInProcess(server: Server, inProcessCaller: InProcessCaller): Duplex {
  const [far, near] = duplexPair()
  connectionState(near).inProcessCaller = inProcessCaller
  // Closing either end closes the other, as with a socket.
  far.once('close', () => near.destroy())
  near.once('close', () => far.destroy())
  server.server.emit('connection', near)
  return far
}

/** Returns the in-process caller of `connection`; null for a network connection. */
export function inProcessCallerOf(connection: object): InProcessCaller | null {
  return connectionState(connection).inProcessCaller
}
