/**
 * A vault that listens, with the real egress gateway, and a TLS destination on loopback that records its requests down to
 * the byte.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { UndiciEgress } from '../../src/adapters/egress/undici-egress.ts'
import type { App } from '../../src/app.ts'
import { parseDestination } from '../../src/base/destination.ts'
import type { Json, JsonObject } from '../../src/base/json.ts'
import type { World } from '../../src/ports/world.ts'
import { portOf } from './servers.ts'
import { stillVault, type StillVault, type StillVaultOptions } from './still-vault.ts'
import type { StillWorld } from './still-world.ts'
import {
  onRequest,
  testAuthority,
  testDestination,
  type ConnectionHandler,
} from './test-destination.ts'

export interface ProxyStage {
  readonly vault: StillVault
  /** The port of the server whose turn it is. */
  readonly port: () => number
  /** The key of a private application that may create tokens and use them anywhere. */
  readonly key: string
  readonly destination: RememberingDestination
  /** Sends bytes unchanged and returns the response once the connection is closed or `enough` has arrived. */
  readonly talk: (bytes: string, enough?: (text: string) => boolean) => Promise<string>
  readonly dial: () => Promise<Socket>
  /** Like dial(), with the serving side: the server, and its end of the connection. */
  readonly dialWithin: () => Promise<{ client: Socket; server: App['server']; serving: Socket }>
  /** Creates a token and returns its id. */
  readonly token: (data: Json, more?: JsonObject) => Promise<string>
  readonly close: () => Promise<void>
}

export interface ReceivedRequest {
  /** The request line. */
  readonly line: string
  /** Names and values as received, in order. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: string
}

export interface RememberingDestination {
  readonly url: string
  readonly port: number
  readonly received: ReceivedRequest[]
  /** Numbers of connections: all it ever accepted, and those open. */
  readonly accepted: () => number
  readonly open: () => number
  /** Writes its response, as bytes; tests may replace it. */
  answer: (received: ReceivedRequest, socket: Socket) => void
}

export interface ProxyStageOptions extends StillVaultOptions {
  /** In place of a destination that answers whole requests. */
  readonly serve?: ConnectionHandler
}

export async function proxyStage(options: ProxyStageOptions = {}): Promise<ProxyStage> {
  const received: ReceivedRequest[] = []
  const serve = onRequest((socket, headerSection, body) => {
    const [line = '', ...lines] = headerSection.split('\r\n')
    const headers = lines.map((it) => {
      const colon = it.indexOf(':')
      return [it.slice(0, colon), it.slice(colon + 1).trim()] as const
    })
    const it = { line, headers, body: body.toString('latin1') }
    received.push(it)
    destination.answer(it, socket)
  })
  const server = await testDestination(options.serve ?? serve, { certificate: 'destination' })
  const destination: RememberingDestination = {
    url: `https://localhost:${server.port}`,
    port: server.port,
    received,
    accepted: server.accepted,
    open: server.open,
    answer: (_received, socket) => answerWith(socket, 200, [], 'done'),
  }
  const egress = new UndiciEgress({
    allow: [parseDestination('localhost')!],
    extraAuthorities: [testAuthority()],
  })
  const change = (world: StillWorld): World => {
    const outside = { ...world, egress } as never as StillWorld
    return options.change?.(outside) ?? outside
  }
  const vault = await stillVault({ ...options, change })
  const { servers } = vault
  for (const { server } of servers.apps) server.prependListener('connection', holdTimers)
  await servers.listen('127.0.0.1')
  for (const it of servers.apps) egress.own(portOf(it))
  const key = await vault.keyFor({ permissions: ['token:create', 'token:use'] })
  return {
    vault,
    port: () => portOf(servers.next()),
    key,
    destination,
    talk,
    dial: () => dial(),
    dialWithin,
    token: async (data, more = {}) => {
      const body = { type: 'token', data, ...more }
      const reply = await vault.call('POST', '/tokens', { key, body })
      assert.equal(reply.status, 201, reply.text)
      return reply.json()['id'] as string
    },
    close: async () => {
      await egress.close()
      await server.close()
      await vault.close()
    },
  }

  async function dial(app = servers.next()): Promise<Socket> {
    const socket = connect(portOf(app), '127.0.0.1')
    socket.on('error', () => {})
    await once(socket, 'connect')
    return socket
  }

  async function dialWithin(): ReturnType<ProxyStage['dialWithin']> {
    const app = servers.next()
    const accepted = once(app.server, 'connection') as Promise<[Socket]>
    const client = await dial(app)
    const [serving] = await accepted
    return { client, server: app.server, serving }
  }

  async function talk(bytes: string, enough = answered): Promise<string> {
    const socket = await dial()
    const done = Promise.withResolvers<void>()
    let text = ''
    socket.setEncoding('latin1')
    socket.on('data', (part: string) => {
      text += part
      if (enough(text)) done.resolve()
    })
    socket.on('close', () => done.resolve())
    socket.write(bytes, 'latin1')
    await done.promise
    socket.destroy()
    return text
  }
}

/** Keeps connections from timing out unless a test emits `timeout`. The property `timeout` still returns the value set. */
function holdTimers(serving: Socket): void {
  const setTimeout = serving.setTimeout.bind(serving)
  serving.setTimeout = (ms, callback) => {
    setTimeout(ms === 0 ? 0 : TIMER_MS_MAX, callback)
    return Object.assign(serving, { timeout: ms })
  }
}

/** The longest delay a timer can have. */
const TIMER_MS_MAX = 2 ** 31 - 1

/** Writes a response of known length. */
export function answerWith(
  socket: Socket,
  status: number,
  headers: readonly string[],
  body: string | Buffer,
): void {
  const bytes = Buffer.from(body as string, 'latin1')
  const headerSection = [`HTTP/1.1 ${status} Reason`, ...headers, `Content-Length: ${bytes.length}`]
  // In one piece: two writes would wait for each other.
  socket.write(
    Buffer.concat([Buffer.from(`${headerSection.join('\r\n')}\r\n\r\n`, 'latin1'), bytes]),
  )
}

/** Whether `text` is one complete response. */
export function answered(received: string): boolean {
  // A response may come after a 100.
  const text = received.replace(/^HTTP\/1\.1 100 [^\r]*\r\n\r\n/, '')
  const end = text.indexOf('\r\n\r\n')
  if (end < 0) return false
  const headerSection = text.slice(0, end)
  if (/^transfer-encoding: chunked/im.test(headerSection)) return text.endsWith('0\r\n\r\n')
  return text.length >= end + 4 + Number(/^content-length: (\d+)/im.exec(headerSection)?.[1] ?? 0)
}
