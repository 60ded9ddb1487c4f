/** A shop of another origin than the vault's: serves the pages that a test gives it, and the vault whose fields they mount. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { startService, type RunningService } from '../../server/test/kit/running-service.ts'

/** A test card number that no brand issues. */
export const NUMBER = '4242424242424242'

export interface Shop {
  readonly vault: RunningService
  /** Of its pages. */
  readonly origin: string
  /** Of the vault, as its pages name it. */
  readonly vaultOrigin: string
  /** A public key whose application lists the shop's origin. */
  readonly publicKey: string
  /** A private key that may store, reveal and use everything, as the shop's own servers have. */
  readonly privateKey: string
  /** Serves a page, and returns its URL. */
  readonly serve: (html: string, headers?: Readonly<Record<string, string>>) => string
  /** Calls the vault's API. */
  readonly call: (key: string, method: string, path: string, body?: unknown) => Promise<ApiReply>
  /** Stores a card, and returns the id of its token. */
  readonly store: (card: object) => Promise<string>
  /** Returns the data of a token. */
  readonly stored: (tokenId: string) => Promise<unknown>
  /** Returns how many tokens have this metadata. */
  readonly count: (name: string, value: string) => Promise<number>
  /** Sends `body` with expressions through the vault's proxy to `url`, as the shop's server charges a token. */
  readonly charge: (url: string, body: object) => Promise<number>
  /** Authorizes a session to reveal one token, as a backend does after it has checked whose it is. */
  readonly authorize: (nonce: string, tokenId: string) => Promise<void>
  /** Creates an application and returns its key. */
  readonly createKey: (application: object) => Promise<string>
  readonly close: () => Promise<void>
}

export interface ApiReply {
  readonly status: number
  readonly body: Record<string, unknown>
}

/** Opens one. `variables` are settings of its vault. */
export async function openShop(variables: Readonly<Record<string, string>> = {}): Promise<Shop> {
  const vault = await startService(variables)
  const pages = new Map<string, ServedPage>()
  const server = createServer((request, response) => {
    const page = pages.get(request.url!)
    response.writeHead(page === undefined ? 404 : 200, {
      'content-type': 'text/html; charset=utf-8',
      ...page?.headers,
    })
    response.end(page?.html)
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  // Two names of one machine are two origins.
  const origin = `http://127.0.0.1:${port}`
  const vaultOrigin = vault.url.replace('127.0.0.1', 'localhost')
  const createKey = async (application: object): Promise<string> => {
    const { status, body } = await call(vault.managementKey, 'POST', '/applications', application)
    if (status !== 201) throw new Error(`No application: ${JSON.stringify(body)}`)
    return body['key'] as string
  }
  const publicKey = await createKey({
    name: 'Shop page',
    type: 'public',
    permissions: ['token:create'],
    allowed_origins: [origin],
  })
  const privateKey = await createKey({
    name: 'Shop server',
    type: 'private',
    rules: [
      {
        description: 'everything',
        priority: 1,
        container: '/',
        transform: 'reveal',
        permissions: ['token:create', 'token:read', 'token:update', 'token:use'],
      },
    ],
  })
  return {
    vault,
    origin,
    vaultOrigin,
    publicKey,
    privateKey,
    serve,
    store: async (data) => {
      const { body } = await call(privateKey, 'POST', '/tokens', { type: 'card', data })
      return body['id'] as string
    },
    stored: async (id) => (await call(privateKey, 'GET', `/tokens/${id}`)).body['data'],
    count: async (name, value) => {
      const path = `/tokens?${new URLSearchParams({ [`metadata.${name}`]: value })}`
      const { body } = await call(privateKey, 'GET', path)
      return (body['pagination'] as { total_items: number }).total_items
    },
    charge: async (url, body) => {
      const response = await fetch(`${vault.url}/proxy`, {
        method: 'POST',
        headers: {
          'BT-API-KEY': privateKey,
          'BT-PROXY-URL': url,
          'Content-Type': 'application/json',
        },
        body: JSON.stringify(body),
      })
      await response.text()
      return response.status
    },
    authorize,
    call,
    createKey,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await vault.stop()
    },
  }

  function serve(html: string, headers: Readonly<Record<string, string>> = {}): string {
    const path = `/${pages.size}`
    pages.set(path, { html, headers })
    return origin + path
  }

  async function authorize(nonce: string, tokenId: string): Promise<void> {
    const rule = {
      description: 'the owner looks at a card',
      priority: 1,
      transform: 'reveal',
      permissions: ['token:read'],
      conditions: [{ attribute: 'id', operator: 'equals', value: tokenId }],
    }
    const reply = await call(privateKey, 'POST', '/sessions/authorize', { nonce, rules: [rule] })
    if (reply.status !== 200) throw new Error(`Not authorized: ${JSON.stringify(reply.body)}`)
  }

  async function call(
    key: string,
    method: string,
    path: string,
    body?: unknown,
  ): Promise<ApiReply> {
    const response = await fetch(vault.url + path, {
      method,
      headers: { 'BT-API-KEY': key, 'Content-Type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return {
      status: response.status,
      body: (text === '' ? {} : JSON.parse(text)) as ApiReply['body'],
    }
  }
}

interface ServedPage {
  readonly html: string
  readonly headers: Readonly<Record<string, string>>
}
