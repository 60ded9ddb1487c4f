/** What an attack on rights has to work with: a running service, its keys, and a destination that records what it receives. */
import { once } from 'node:events'
import { createServer, request, type ClientRequest, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Json, JsonObject } from '../../../src/base/json.ts'
import { runProgram, startVault } from '../../kit/running-vault.ts'

export interface AttackReply {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly text: string
  /** Throws if there is no JSON. */
  readonly json: () => JsonObject
}

export interface AttackCall {
  readonly key?: string
  readonly body?: Json
  readonly headers?: Readonly<Record<string, string>>
}

/** A request whose headers have been read, and whose body has not been sent. */
export interface HeldRequest {
  /** Sends the body, or a byte of it every `paceMs`; resolves with the response. Rejects if the connection ends without one. */
  readonly release: (paceMs?: number) => Promise<AttackReply>
}

export interface MadeApplication {
  readonly id: string
  readonly key: string
}

export interface Attacked {
  readonly managementKey: string
  /** The name of another tenant. */
  readonly otherTenant: string
  /** Opens a request whose body is written piece by piece. */
  readonly open: (method: string, path: string, call: AttackCall) => ClientRequest
  readonly call: (method: string, path: string, call?: AttackCall) => Promise<AttackReply>
  /** Sends the headers, and resolves when the service has authenticated their key. */
  readonly hold: (method: string, path: string, call: AttackCall) => Promise<HeldRequest>
  /** Creates an application. */
  readonly application: (body: JsonObject) => Promise<MadeApplication>
  readonly deleteApplication: (it: MadeApplication) => Promise<void>
  /** A private key that may do anything with tokens. */
  readonly owner: MadeApplication
  /** Stores `data` in a container and returns the token's id. */
  readonly token: (data: Json, container?: string) => Promise<string>
  /** Audit events, newest first. */
  readonly events: () => Promise<JsonObject[]>
  readonly destination: { readonly url: string; readonly received: string[] }
}

/** Starts a service with two tenants, by default of this checkout, and prepares it for attacks. */
export async function startAttacked(
  folder: string,
  checkout?: string,
): Promise<{ on: Attacked; stop: () => Promise<void> }> {
  const destination = await openDestination()
  const where = { SYMBOLON_DATA_DIR: folder, SYMBOLON_EGRESS_ALLOW: destination.allow }
  const otherTenant = 'already taken'
  const init = (name: string) => runProgram(['init', '--name', name], where, undefined, checkout)
  const made = await init('attacked')
  await init(otherTenant)
  const managementKey = /^api_key\s+(\S+)$/m.exec(made.out)![1]!
  const variables = { SYMBOLON_REACTOR_LEVEL: 'jail', ...where }
  const vault = await startVault(folder, variables, checkout)
  return {
    on: await prepareAttack(vault.url, { managementKey, otherTenant, destination }),
    stop: async () => {
      await vault.stop()
      destination.close()
    },
  }
}

/** Starts a destination on loopback that answers everything with 200, and records bodies. */
async function openDestination() {
  const received: string[] = []
  const server = createServer((incoming, response) => {
    let body = ''
    incoming.on('data', (chunk: Buffer) => (body += chunk.toString()))
    incoming.on('end', () => {
      received.push(`${incoming.method} ${incoming.url} ${body}`)
      response.end('received')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    allow: `127.0.0.1:${port}`,
    received,
    close: () => server.close(),
  }
}

/** Prepares the service at `url` for attacks. */
async function prepareAttack(
  url: string,
  {
    managementKey,
    otherTenant,
    destination,
  }: Pick<Attacked, 'managementKey' | 'otherTenant' | 'destination'>,
): Promise<Attacked> {
  const owner = await application({
    name: 'owner',
    type: 'private',
    permissions: TOKEN_PERMISSIONS,
  })
  return {
    managementKey,
    otherTenant,
    open: send,
    call,
    hold,
    application,
    deleteApplication: async ({ id }) => {
      const { status } = await call('DELETE', `/applications/${id}`, { key: managementKey })
      if (status !== 204) throw new Error(`Cannot delete an application: ${status}`)
    },
    owner,
    token: async (data, container = '/held/') => {
      const body = { type: 'token', data, containers: [container] }
      return idOf(await call('POST', '/tokens', { key: owner.key, body }))
    },
    events: async () => {
      const reply = await call('GET', '/logs?size=100', { key: managementKey })
      return reply.json()['data'] as JsonObject[]
    },
    destination,
  }

  function send(method: string, path: string, { key, body, headers }: AttackCall): ClientRequest {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
    const sent = request(`${url}${path}`, {
      method,
      agent: false,
      headers: {
        ...(key === undefined ? {} : { 'bt-api-key': key }),
        ...(body === undefined
          ? {}
          : { 'content-type': type, 'content-length': Buffer.byteLength(JSON.stringify(body)) }),
        ...headers,
      },
    })
    sent.on('error', () => {})
    return sent
  }

  async function call(
    method: string,
    path: string,
    options: AttackCall = {},
  ): Promise<AttackReply> {
    const sent = send(method, path, options)
    sent.end(options.body === undefined ? undefined : JSON.stringify(options.body))
    return await replyTo(sent)
  }

  async function hold(method: string, path: string, options: AttackCall): Promise<HeldRequest> {
    // Once the key is cached, it is authenticated in the same turn of the event loop that answers 100.
    if (options.key !== undefined) await call('GET', '/applications/key', { key: options.key })
    const headers = { ...options.headers, expect: '100-continue' }
    const sent = send(method, path, { ...options, headers })
    sent.flushHeaders()
    await once(sent, 'continue')
    const reply = replyTo(sent)
    reply.catch(() => {})
    return {
      release: async (paceMs) => {
        const body = JSON.stringify(options.body)
        if (paceMs !== undefined) {
          for (const byte of body) {
            sent.write(byte)
            await new Promise((resolve) => setTimeout(resolve, paceMs))
          }
        }
        sent.end(paceMs === undefined ? body : undefined)
        return await reply
      },
    }
  }

  async function application(body: JsonObject): Promise<MadeApplication> {
    const reply = await call('POST', '/applications', { key: managementKey, body })
    return { id: idOf(reply), key: reply.json()['key'] as string }
  }
}

/** Returns the id in a response. Throws if there is none. */
export function idOf(reply: AttackReply): string {
  const { id } = reply.json()
  if (typeof id !== 'string') throw new Error(`${reply.status}: ${reply.text}`)
  return id
}

async function replyTo(sent: ClientRequest): Promise<AttackReply> {
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  let text = ''
  for await (const chunk of response) text += (chunk as Buffer).toString()
  return {
    status: response.statusCode!,
    headers: response.headers,
    text,
    json: () => JSON.parse(text) as JsonObject,
  }
}

const TOKEN_PERMISSIONS = [
  'token:create',
  'token:read',
  'token:update',
  'token:delete',
  'token:search',
  'token:use',
]
