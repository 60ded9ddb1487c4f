/** One address for several servers: forwards each whole request to the server whose turn it is. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pipeline } from 'node:stream/promises'
import { Agent, request } from 'undici'

export interface RoundRobin {
  /** Without a trailing slash. */
  readonly url: string
  readonly close: () => Promise<void>
}

/** Hop-by-hop headers, which are not forwarded: RFC 9110, section 7.6.1. */
const HOP_BY_HOP = ['connection', 'keep-alive', 'transfer-encoding']

/** For a single server it is that server's own address, with nothing in between. */
export async function roundRobin(urls: readonly string[]): Promise<RoundRobin> {
  if (urls.length === 1) return { url: urls[0]!, close: async () => {} }
  // Not node:http, whose client requests some tests observe.
  const dispatcher = new Agent()
  let asked = 0
  const server = createServer((from, to) => {
    const url = urls[asked++ % urls.length]!
    forward(from, to, url).catch((error: Error) => to.destroy(error))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    // By name: the published client speaks plain HTTP to no other host.
    url: `http://localhost:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.close()
      server.closeAllConnections()
      await dispatcher.close()
    },
  }

  async function forward(from: IncomingMessage, to: ServerResponse, url: string): Promise<void> {
    const body = Buffer.concat((await from.toArray()) as Buffer[])
    const reply = await request(url + from.url!, {
      dispatcher,
      method: from.method as 'GET',
      headers: endToEnd(from.headers),
      body: body.length === 0 ? null : body,
    })
    to.writeHead(reply.statusCode, reply.statusText, endToEnd(reply.headers))
    await pipeline(reply.body, to)
  }
}

function endToEnd(headers: IncomingMessage['headers']): IncomingMessage['headers'] {
  const entries = Object.entries(headers)
  return Object.fromEntries(entries.filter(([name]) => !HOP_BY_HOP.includes(name)))
}
