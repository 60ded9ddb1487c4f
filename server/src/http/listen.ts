/**
 * Where the server can be reached: on `localhost`, that is both loopback families.
 *
 * Clients differ in which of 127.0.0.1 and ::1 they try for `localhost`, and on a machine whose hosts
 * file names only one, resolving the name would leave the others out.
 */
import { once } from 'node:events'
import { createServer, type Server as SocketServer } from 'node:net'
import type { Server } from './server.ts'

/** Resolves with the port once connections are accepted. 0 asks for one that is free. */
export async function listen(server: Server, host: string, port: number): Promise<number> {
  // A connection that falls idle while we stop is closed, not kept for a next request.
  server.addHook('preClose', async () => {
    server.server.keepAliveTimeout = 1
  })
  if (host !== 'localhost') return portOf(await server.listen({ host, port }))
  const second = createServer((socket) => server.server.emit('connection', socket))
  server.addHook('preClose', async () => {
    second.close()
  })
  const bound = portOf(await server.listen({ host: '127.0.0.1', port }))
  try {
    await listenOn(second, '::1', bound)
  } catch (error) {
    // Without IPv6 there is no second family. An address that somebody else has is another matter: it
    // would be they who are sent our clients' keys.
    if (!NO_SUCH_FAMILY.has((error as NodeJS.ErrnoException).code ?? '')) throw error
  }
  return bound
}

const NO_SUCH_FAMILY = new Set(['EADDRNOTAVAIL', 'EAFNOSUPPORT'])

async function listenOn(server: SocketServer, host: string, port: number): Promise<void> {
  server.listen({ host, port })
  await once(server, 'listening')
}

function portOf(url: string): number {
  return Number(new URL(url).port)
}
