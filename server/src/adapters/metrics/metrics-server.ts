import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { http } from '../../base/node-http.ts'
import { EXPOSITION_TYPE, renderFamilies, type Family } from './exposition.ts'

export interface MetricsServer {
  readonly port: number
  readonly close: () => Promise<void>
}

/** Serves `GET /metrics` on an address of its own, and nothing else. */
export async function serveMetrics(
  host: string,
  port: number,
  collect: () => Promise<readonly Family[]>,
): Promise<MetricsServer> {
  const server = http.createServer(
    { maxHeaderSize: 8192, requestTimeout: 5_000 },
    (request, response) => {
      if (request.url !== '/metrics' || request.method !== 'GET') {
        response.writeHead(404).end()
        return
      }
      collect().then(
        (families) => {
          response.writeHead(200, { 'content-type': EXPOSITION_TYPE }).end(renderFamilies(families))
        },
        () => response.writeHead(503).end(),
      )
    },
  )
  server.maxConnections = CONNECTIONS_MAX
  server.listen({ host, port })
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    close: async () => {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

/** Only a collector or two should connect here. */
const CONNECTIONS_MAX = 16
