/** Sends requests over real connections, with targets and headers as they are: no client in between makes them better. */
import { once } from 'node:events'
import { Agent, request, type IncomingMessage } from 'node:http'
import { portOf } from '../kit/servers.ts'
import type { Reply, StillVault } from '../kit/still-vault.ts'
import type { GeneratedRequest } from './requests.ts'

export interface WireClient {
  readonly send: (
    sent: Pick<GeneratedRequest, 'method' | 'target' | 'headers' | 'body'>,
  ) => Promise<Reply>
  readonly close: () => void
}

/** Makes the servers of `vault` listen, and calls them in turn. */
export async function wireClient({ servers }: StillVault): Promise<WireClient> {
  await servers.listen('127.0.0.1')
  const agent = new Agent({ keepAlive: true })
  return {
    send: async ({ method, target, headers, body }) => {
      const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
      const sent = request({
        agent,
        host: '127.0.0.1',
        port: portOf(servers.next()),
        method,
        path: target,
        headers: { ...headers, ...length },
      })
      sent.end(body)
      const [reply] = (await once(sent, 'response')) as [IncomingMessage]
      const bytes = Buffer.concat((await reply.toArray()) as Buffer[])
      const text = bytes.toString()
      return {
        status: reply.statusCode!,
        headers: reply.headers as Record<string, string>,
        text,
        bytes,
        json: () => JSON.parse(text),
      }
    },
    close: () => agent.destroy(),
  }
}
