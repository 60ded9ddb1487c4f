/**
 * Listens for connections: on `localhost`, on both loopback families.
 *
 * Clients differ in which of 127.0.0.1 and ::1 they try for `localhost`, and on a machine whose hosts file names only one,
 * resolving the name would leave the other out.
 */
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server as SocketServer } from 'node:net'
import type { Server } from './server.ts'

/**
 * Resolves with the port once connections are accepted. Port 0 asks for a free one.
 *
 * Calls `onBound` with the port before the first request is read: from then on the service must know its own address.
 */
export async function listen(
  server: Server,
  { host, port }: { readonly host: string; readonly port: number },
  onBound: (port: number) => void,
): Promise<number> {
  // A connection that becomes idle during shutdown is closed, not kept for a next request.
  server.addHook('preClose', async () => {
    server.server.keepAliveTimeout = 1
  })
  server.server.once('listening', () => onBound((server.server.address() as AddressInfo).port))
  if (host !== 'localhost') return portOf(await server.listen({ host, port }))
  const second = createServer((socket) => server.server.emit('connection', socket))
  server.addHook('preClose', async () => {
    second.close()
  })
  const bound = portOf(await server.listen({ host: '127.0.0.1', port }))
  await onSecondFamily(listenOn(second, '::1', bound))
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
 * Binds the addresses of listen() and `others`, then releases them. A start calls this before it creates anything: if it
 * fails to listen, it must leave no state, such as a key that was shown once.
 *
 * Never listens on them, so connections made meanwhile are refused, as before. Throws the reason if an address cannot be used.
 */
export async function tryBinding(
  address: ListenAddress,
  others: readonly ListenAddress[],
): Promise<void> {
  const bound = await bindFamilies(address)
  for (const it of others) {
    const ip = await telling(it, bind(it.host, it.port))
    // Two sockets that do not listen may share an address, so binding both does not reveal a conflict.
    if (it.port === 0 || it.port !== address.port || !bound.some((own) => overlap(own, ip)))
      continue
    await telling(it, Promise.reject(new Error('the service itself listens there')))
  }
}

/** Binds every address of `address`, and returns them as IP addresses. */
async function bindFamilies(address: ListenAddress): Promise<string[]> {
  const { host, port } = address
  if (host !== 'localhost') return [await telling(address, bind(host, port))]
  const families = ['127.0.0.1', '::1']
  await telling({ ...address, host: families[0]! }, bind(families[0]!, port))
  await telling({ ...address, host: families[1]! }, onSecondFamily(bind(families[1]!, port)))
  return families
}

function overlap(a: string, b: string): boolean {
  return a === b || a in LOOPBACK_OF || b in LOOPBACK_OF
}

/** Loopback addresses, by the wildcard address of their family. */
const LOOPBACK_OF: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' }

/**
 * Binds a socket to the address and releases it; resolves with the IP address of `host`.
 *
 * Node binds only sockets that listen or connect. This one connects to a listener of our own, on another port.
 */
async function bind(host: string, port: number): Promise<string> {
  const { address: ip } = await lookup(host)
  const peer = createServer((socket) => socket.on('error', () => {}))
  const peerHost = LOOPBACK_OF[ip] ?? ip
  await listenOn(peer, peerHost, 0)
  try {
    const { port: peerPort } = peer.address() as AddressInfo
    const local = { localAddress: ip, localPort: port }
    const socket = connect({ host: peerHost, port: peerPort, ...local })
    await once(socket, 'connect')
    // A reset leaves no connection of this address in TIME_WAIT.
    socket.resetAndDestroy()
    await once(socket, 'close')
    return ip
  } finally {
    peer.close()
  }
}

/** Adds the address and its settings to the error if `work` fails. */
async function telling<Result>(
  { host, port, settings }: ListenAddress,
  work: Promise<Result>,
): Promise<Result> {
  try {
    return await work
  } catch (cause) {
    throw new Error(`Cannot listen on ${host}, port ${port}, as ${settings} say`, { cause })
  }
}

/** Without IPv6 there is no second family. An address in use is an error: its owner would be sent our clients' keys. */
async function onSecondFamily(work: Promise<unknown>): Promise<void> {
  try {
    await work
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
