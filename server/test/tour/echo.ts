/**
 * A destination to try the proxy with: it echoes every request. It also receives callbacks:
 * given the secret at `/secret`, it accepts callbacks signed with it at `/callback`, and shows them at `/received`.
 *
 * It listens on loopback, with a test certificate that clients trust only if configured to.
 * `npm run echo --workspace server`, or with `-- --port 0` for a port that is free.
 */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { parseArgs } from 'node:util'
import { TourReceiver } from './receiver.ts'

const CERTIFICATES = new URL('../kit/certificates/', import.meta.url)

const receiver = new TourReceiver()
const { values } = parseArgs({ options: { port: { type: 'string', default: '4443' } } })
const server = createServer({
  key: readFileSync(new URL('server.key', CERTIFICATES)),
  cert: readFileSync(new URL('destination.pem', CERTIFICATES)),
})
server.on('request', (request, response) => {
  let body = ''
  request.setEncoding('utf8').on('data', (chunk: string) => (body += chunk))
  request.on('end', () => {
    const { method, url } = request
    if (url === '/secret') {
      receiver.learn(body)
      response.writeHead(204).end()
      return
    }
    process.stdout.write(`${method} ${url}\n${body}\n`)
    response.setHeader('Content-Type', 'application/json')
    if (url === '/callback') {
      response.writeHead(receiver.receive(body, request.headers as Record<string, string>)).end()
    } else if (url === '/received') {
      void receiver.received().then((received) => response.end(JSON.stringify({ received })))
    } else response.end(JSON.stringify({ request: `${method} ${url}`, body }))
  })
})
server.on('error', ({ message }) => {
  process.stderr.write(`${message}\n`)
  process.exitCode = 1
})
server.listen(Number(values.port), '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  process.stdout.write(`It listens at https://localhost:${port}\n`)
})
