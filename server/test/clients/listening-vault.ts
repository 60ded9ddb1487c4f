/**
 * Vaults that listen on a real localhost socket, for clients that bring their own HTTP.
 */
import { BasisTheory } from '@basis-theory/basis-theory-js'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { UndiciEgress } from '../../src/adapters/egress/undici-egress.ts'
import type { App } from '../../src/app.ts'
import { parseDestination } from '../../src/base/destination.ts'
import { connectInProcess } from '../../src/http/connection/in-process-connections.ts'
import { runPlainly } from '../kit/plain-runner.ts'
import { startService } from '../kit/running-service.ts'
import { portOf } from '../kit/servers.ts'
import { stillVault } from '../kit/still-vault.ts'
import {
  AUTHORITY_FILE,
  onRequest,
  testAuthority,
  testDestination,
  type TestDestination,
} from '../kit/test-destination.ts'

export interface ListeningVault {
  /** Without a slash at the end. */
  readonly baseUrl: string
  readonly managementKey: string
  /** Of a destination that it may send to, and that answers with what it was sent. */
  readonly destinationUrl: string
  readonly close: () => Promise<void>
}

/** The app over the store that the run is about, in this process. */
export async function listenInMemory(): Promise<ListeningVault> {
  const destination = await echo()
  const egress = new UndiciEgress({
    allow: [parseDestination('localhost')!],
    extraAuthorities: [testAuthority()],
  })
  const vault = await stillVault({ change: (world) => ({ ...world, egress }) })
  const { servers, tenantId } = vault
  await servers.listen('localhost')
  // A request to a connection, so that each finds the server whose turn it is.
  for (const { server } of servers.apps) server.maxRequestsPerSocket = 1
  const front = await listenBefore(() => connect(portOf(servers.next()), 'localhost'))
  // Stand in for what carries bytes between code and the server that runs it: whatever connects comes from inside.
  const brokers = new Map<App, Awaited<ReturnType<typeof listenBefore>>>()
  for (const it of servers.apps) {
    brokers.set(
      it,
      await listenBefore(() => connectInProcess(it, { tenantId, destinations: null })),
    )
  }
  vault.world.runner.behave = async (ran) => {
    const client = new BasisTheory()
    const options = { apiBaseUrl: brokers.get(servers.inProcess())!.url }
    const bt = ran.apiKey === null ? null : await client.init(ran.apiKey, options)
    return await runPlainly(ran, bt)
  }
  return {
    baseUrl: front.url,
    managementKey: vault.managementKey,
    destinationUrl: `https://localhost:${destination.port}`,
    close: async () => {
      for (const it of [front, ...brokers.values()]) it.close()
      await egress.close()
      await vault.close()
      await destination.close()
    },
  }
}

/** Forwards each connection to one that `open` opens. */
async function listenBefore(open: () => Duplex): Promise<{ url: string; close: () => void }> {
  const server = createServer((socket) => {
    const connection = open()
    for (const it of [socket, connection]) it.on('error', () => {})
    socket.pipe(connection).pipe(socket)
  })
  server.listen(0, 'localhost')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { url: `http://localhost:${port}`, close: () => server.close() }
}

/** `symbolon serve` as an operator starts it first: with nothing there, in a process of its own. */
export async function startServe(): Promise<ListeningVault> {
  const destination = await echo()
  const service = await startService({
    SYMBOLON_EGRESS_ALLOW: `localhost:${destination.port}`,
    SYMBOLON_EXTRA_CA_FILE: AUTHORITY_FILE,
  })
  return {
    baseUrl: service.url,
    managementKey: service.managementKey,
    destinationUrl: `https://localhost:${destination.port}`,
    close: async () => {
      await service.stop()
      await destination.close()
    },
  }
}

/** Answers with what it was sent; `/refuse` with 402. */
async function echo(): Promise<TestDestination> {
  const answer = onRequest((socket, headerSection, body) => {
    const [line] = headerSection.split('\r\n')
    const refusing = line!.includes('/refuse')
    const sent = JSON.stringify({ line, body: body.toString() })
    socket.write(
      `HTTP/1.1 ${refusing ? '402 Payment Required' : '200 OK'}\r\nX-Theirs: own\r\n` +
        'Content-Type: application/json\r\n' +
        `Content-Length: ${Buffer.byteLength(sent)}\r\n\r\n${sent}`,
    )
  })
  return await testDestination(answer, { certificate: 'destination' })
}
