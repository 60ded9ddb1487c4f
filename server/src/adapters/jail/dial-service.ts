import { connect } from 'node:net'
import type { Duplex } from 'node:stream'

/** Connects to the service itself, which listens at `port` of this machine; null while it does not. */
export function dialService(port: number | null): Promise<Duplex> {
  if (port === null) return Promise.reject(new Error('The service does not listen yet'))
  const { promise, resolve, reject } = Promise.withResolvers<Duplex>()
  const socket = connect({ host: 'localhost', port }, () => resolve(socket)).on('error', reject)
  return promise
}
