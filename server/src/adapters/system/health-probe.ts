import { http } from '../../base/node-http.ts'

/** The result of asking an address for `GET /health/ready`. */
export type Health =
  /** Nothing listens there. */
  | { readonly kind: 'nothing' }
  /** A Symbolon service; `ready` says whether its store reads and writes. */
  | { readonly kind: 'symbolon'; readonly ready: boolean }
  /** Any other program, or a service too busy to answer. */
  | { readonly kind: 'other'; readonly answer: string }

/** Asks the service that listens on `host`, a name or an address as in its settings. Never rejects. */
export async function probeHealth(host: string, port: number, timeoutMs: number): Promise<Health> {
  const { promise, resolve } = Promise.withResolvers<Health>()
  const request = http.get(
    { host: reachable(host), port, path: '/health/ready', timeout: timeoutMs, agent: false },
    (reply) => {
      let text = ''
      reply.setEncoding('utf8')
      reply.on('data', (chunk: string) => {
        text += chunk
        if (text.length > ANSWER_CHARS_MAX) reply.destroy()
      })
      reply.on('close', () => {
        request.destroy()
        resolve(healthOf(reply.statusCode ?? 0, text))
      })
    },
  )
  request.on('timeout', () => {
    resolve({ kind: 'other', answer: `nothing within ${timeoutMs} ms` })
    request.destroy()
  })
  request.on('error', (error: NodeJS.ErrnoException) => {
    if (error instanceof AggregateError || NOTHING.has(error.code ?? '')) {
      resolve({ kind: 'nothing' })
    } else resolve({ kind: 'other', answer: error.code ?? 'no HTTP' })
  })
  return await promise
}

function healthOf(status: number, text: string): Health {
  if (status === 200 && text.startsWith('{"status":"ok","checks":{')) {
    return { kind: 'symbolon', ready: true }
  }
  if (status === 503 && text.startsWith('{"status":"unavailable","checks":{')) {
    return { kind: 'symbolon', ready: false }
  }
  return { kind: 'other', answer: `HTTP status ${status}` }
}

/** Returns the loopback address for a service that listens on every address. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  return host === '::' ? '::1' : host
}

const NOTHING = new Set(['ECONNREFUSED', 'EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN'])
const ANSWER_CHARS_MAX = 10_000
