/**
 * Baselines for a proxied request: a destination, and a reverse proxy that only forwards.
 *
 * Both are minimal node:http servers.
 */
import { Agent, createServer, request, type Server } from 'node:http'

/** Path of an answer of LARGE_BYTES bytes; any other request is echoed. */
export const LARGE_PATH = '/large'
export const LARGE_BYTES = 10 * 2 ** 20

export function destination(): Server {
  const large = Buffer.alloc(LARGE_BYTES, 'x')
  return createServer((asked, answer) => {
    if (asked.url === LARGE_PATH) {
      asked.resume()
      answer.writeHead(200, { 'content-type': 'text/plain', 'content-length': LARGE_BYTES })
      answer.end(large)
      return
    }
    const chunks: Buffer[] = []
    asked.on('data', (chunk: Buffer) => chunks.push(chunk))
    asked.on('end', () => {
      const body = Buffer.concat(chunks)
      const type = asked.headers['content-type'] ?? 'text/plain'
      answer.writeHead(200, { 'content-type': type, 'content-length': body.length })
      answer.end(body)
    })
  })
}

/** Forwards everything to a port of this machine, and streams what comes back. */
export function bareProxy(port: number): Server {
  const agent = new Agent({ keepAlive: true })
  return createServer((asked, answer) => {
    const { method, url, headers } = asked
    const passed = request({ agent, host: '127.0.0.1', port, method, path: url, headers }, (it) => {
      answer.writeHead(it.statusCode!, it.headers)
      it.pipe(answer)
    })
    asked.pipe(passed)
  })
}
