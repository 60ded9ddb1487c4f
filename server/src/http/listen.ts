/**
 * Listens for connections: on `localhost`, on both loopback families.
 *
 * Clients differ in which of 127.0.0.1 and ::1 they try for `localhost`, and on a machine whose hosts file names only one,
 * resolving the name would leave the other out.
 */
import { once } from 'node:events'
import { createServer, type AddressInfo, type Server as SocketServer } from 'node:net'
import type { Server } from './server.ts'

/** Resolves with the port once connections are accepted. 0 asks for a free one. */
export async function listen(server: Server, host: string, port: number): Promise<number> {
  // A connection that becomes idle during shutdown is closed, not kept for a next request.
  server.addHook('preClose', async () => {
    server.server.keepAliveTimeout = 1
  })
  if (host !== 'localhost') return portOf(await server.listen({ host, port }))
  const second = createServer((socket) => server.server.emit('connection', socket))
  server.addHook('preClose', async () => {
    second.close()
  })
  const bound = portOf(await server.listen({ host: '127.0.0.1', port }))
  await listenOnSecond(second, bound)
  return bound
}

/** An address to listen on. */
export interface ListenAddress {
  readonly host: string
  readonly port: number
  /** Names of the settings that define it. */
  readonly settings: string
}

/**
 * Binds the addresses of listen() and `others`, all at once, then releases them. A start calls this before it creates anything:
 * if it fails to listen, it must leave no state, such as a key that was shown once.
 *
 * Connections made meanwhile are refused, as before. Throws the reason an address cannot be used.
 */
export async function tryListening(
  address: ListenAddress,
  others: readonly ListenAddress[],
): Promise<void> {
  const held: SocketServer[] = []
  const next = (): SocketServer => {
    const server = createServer((socket) => socket.destroy())
    held.push(server)
    return server
  }
  try {
    if (address.host === 'localhost') {
      const bound = await tryOne(next(), { ...address, host: '127.0.0.1' })
      await telling({ ...address, host: '::1', port: bound }, listenOnSecond(next(), bound))
    } else await tryOne(next(), address)
    for (const it of others) await tryOne(next(), it)
  } finally {
    await Promise.all(held.map(letGo))
  }
}

async function tryOne(server: SocketServer, address: ListenAddress): Promise<number> {
  await telling(address, listenOn(server, address.host, address.port))
  return (server.address() as AddressInfo).port
}

/** Adds the address and its settings to the error if `listening` fails. */
async function telling(
  { host, port, settings }: ListenAddress,
  listening: Promise<void>,
): Promise<void> {
  try {
    await listening
  } catch (cause) {
    throw new Error(`Cannot listen on ${host}, port ${port}, as ${settings} say`, { cause })
  }
}

async function letGo(server: SocketServer): Promise<void> {
  if (!server.listening) return
  server.close()
  await once(server, 'close')
}

/** Without IPv6 there is no second family. An address in use is an error: its owner would be sent our clients' keys. */
async function listenOnSecond(server: SocketServer, port: number): Promise<void> {
  try {
    await listenOn(server, '::1', port)
  } catch (error) {
    if (!NO_SUCH_FAMILY.has((error as NodeJS.ErrnoException).code ?? '')) throw error
  }
}

const NO_SUCH_FAMILY = new Set(['EADDRNOTAVAIL', 'EAFNOSUPPORT'])

async function listenOn(server: SocketServer, host: string, port: number): Promise<void> {
  server.listen({ host, port })
  await once(server, 'listening')
}

function portOf(url: string): number {
  return Number(new URL(url).port)
}
