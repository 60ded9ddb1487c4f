/**
 * Vaults behind a real socket on localhost, for clients that bring their own HTTP.
 */
import { BasisTheory } from '@basis-theory/basis-theory-js'
import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { UndiciEgress } from '../../src/adapters/egress/undici-egress.ts'
import { parseDestination } from '../../src/base/destination.ts'
import { connectInside } from '../../src/http/inside.ts'
import { runPlainly } from '../kit/plain-runner.ts'
import { stillVault, type StillVault } from '../kit/still-vault.ts'
import {
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

/** The app over memory stores, in this process. */
export async function listenInMemory(): Promise<ListeningVault> {
  const destination = await echo()
  const egress = new UndiciEgress({
    allow: [parseDestination('localhost')!],
    extraAuthorities: [testAuthority()],
  })
  const vault = await stillVault({ change: (world) => ({ ...world, egress }) })
  await vault.app.listen({ host: 'localhost', port: 0 })
  const { port } = vault.app.server.address() as AddressInfo
  const baseUrl = `http://localhost:${port}`
  const broker = await listenInside(vault)
  vault.world.runner.behave = async (ran) => {
    const client = new BasisTheory()
    const options = { apiBaseUrl: broker.url }
    const bt = ran.apiKey === null ? null : await client.init(ran.apiKey, options)
    return await runPlainly(ran, bt)
  }
  return {
    baseUrl,
    managementKey: vault.managementKey,
    destinationUrl: `https://localhost:${destination.port}`,
    close: async () => {
      broker.close()
      await egress.close()
      await vault.close()
      await destination.close()
    },
  }
}

/** Stands in for what carries bytes between code and the service: whatever connects to it comes from inside. */
async function listenInside({ app, tenantId }: StillVault) {
  const server = createServer((socket) => {
    const connection = connectInside(app, tenantId)
    for (const it of [socket, connection]) it.on('error', () => {})
    socket.pipe(connection).pipe(socket)
  })
  server.listen(0, 'localhost')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { url: `http://localhost:${port}`, close: () => server.close() }
}

/** `symbolon serve` as an operator starts it first: an empty folder, a process of its own. */
export async function startServe(): Promise<ListeningVault> {
  const destination = await echo()
  const folder = mkdtempSync(path.join(tmpdir(), 'symbolon-client-'))
  const main = path.join(import.meta.dirname, '../../src/main.ts')
  const args = [main, 'serve', '--port', '0', '--data-dir', folder, '--log-level', 'silent']
  const authority = path.join(import.meta.dirname, '../kit/certificates/authority.pem')
  args.push('--egress-allow', `localhost:${destination.port}`, '--extra-ca-file', authority)
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const { apiKey, baseUrl } = await greetingOf(child)
  return {
    baseUrl,
    managementKey: apiKey,
    destinationUrl: `https://localhost:${destination.port}`,
    close: async () => {
      child.kill('SIGTERM')
      if (child.exitCode === null) await once(child, 'exit')
      await destination.close()
      rmSync(folder, { recursive: true })
    },
  }
}

/** Answers with what it was sent; `/refuse` with 402. */
async function echo(): Promise<TestDestination> {
  const answer = onRequest((socket, head, body) => {
    const [line] = head.split('\r\n')
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

async function greetingOf(
  child: ChildProcessByStdio<null, Readable, null>,
): Promise<{ apiKey: string; baseUrl: string }> {
  let apiKey: string | undefined
  for await (const line of createInterface(child.stdout)) {
    apiKey ??= /api_key\s+(\S+)/.exec(line)?.[1]
    const baseUrl = /is ready at (\S+)/.exec(line)?.[1]
    if (baseUrl !== undefined && apiKey !== undefined) return { apiKey, baseUrl }
  }
  throw new Error(`symbolon serve ended before it was ready, with status ${child.exitCode}`)
}
