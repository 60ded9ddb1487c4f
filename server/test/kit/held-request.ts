import { Readable } from 'node:stream'
import type { CallOptions, Method, Reply, StillVault } from './still-vault.ts'

/**
 * Sends a request whose body is held back. Resolves once the service has authenticated its key and waits for the body; the
 * function it resolves with sends the body, unless told to go on holding it, and resolves with the response.
 */
export async function holdBody(
  { servers }: StillVault,
  method: Method,
  url: string,
  { key, body = {}, headers = {} }: CallOptions,
): Promise<(holding?: 'holding') => Promise<Reply>> {
  const text = JSON.stringify(body)
  const isRead = Promise.withResolvers<void>()
  const payload = new Readable({ read: () => isRead.resolve() })
  const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
  const answering = servers.next().inject({
    method,
    url,
    headers: {
      ...(key === undefined ? {} : { 'bt-api-key': key }),
      'content-type': type,
      'content-length': String(Buffer.byteLength(text)),
      ...headers,
    },
    payload,
  })
  await isRead.promise
  return async (holding) => {
    servers.expireCaches()
    if (holding === undefined) {
      payload.push(text)
      payload.push(null)
    }
    const reply = await answering
    return {
      status: reply.statusCode,
      headers: reply.headers as Record<string, string>,
      text: reply.payload,
      bytes: reply.rawPayload,
      json: () => reply.json(),
    }
  }
}
