/**
 * A load generator light enough not to distort the measurement.
 *
 * Raw sockets, one request in flight on each, keep-alive; answers are read by their content length and
 * checked for their status. Latencies are microseconds in a histogram of one bucket a microsecond up to
 * a hundred milliseconds, then one per hundred microseconds.
 */
import { connect, type Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'

export interface LoadOptions {
  readonly port: number
  /** Requests in flight. */
  readonly connections: number
  readonly warmupMs: number
  readonly measureMs: number
  /** The whole request, header section and body; called for each. */
  readonly request: () => Buffer
  /** The only status that counts as success. */
  readonly status: number
  /** Whether to leave the core to others between answers; then the server pays for waking us. */
  readonly sleeps?: true
  /** CPU time of the server so far; read where the measured time begins and ends. */
  readonly cpuUs?: () => number
}

export interface LoadResult {
  readonly requests: number
  readonly failures: number
  readonly seconds: number
  readonly cpuUs: number
  readonly p50Us: number
  readonly p99Us: number
}

/** Renders a request with a JSON body; the same bytes may be sent any number of times. */
export function postBytes(
  path: string,
  body: string,
  headers: Record<string, string> = {},
): Buffer {
  const extra = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(
    `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\n${extra.join('')}\r\n${body}`,
  )
}

/** Sends requests for the whole time and measures those that begin after the warm-up. */
export async function load(options: LoadOptions): Promise<LoadResult> {
  const latencies = new LatencyHistogram()
  const begin = performance.now() + options.warmupMs
  const end = begin + options.measureMs
  let failures = 0
  if (options.sleeps !== true) stayAwake()
  const clients = Array.from({ length: options.connections }, () => client())
  await setTimeout(options.warmupMs)
  const cpuBefore = options.cpuUs?.() ?? 0
  await Promise.all(clients)
  return {
    cpuUs: (options.cpuUs?.() ?? 0) - cpuBefore,
    requests: latencies.count,
    failures,
    seconds: options.measureMs / 1000,
    p50Us: latencies.quantile(0.5),
    p99Us: latencies.quantile(0.99),
  }

  /**
   * Keeps this process from sleeping between answers. On a virtual machine, waking a sleeping process costs
   * the writer more than a whole request does, and only a server slow enough to let us sleep would pay.
   */
  function stayAwake(): void {
    if (performance.now() < end) setImmediate(stayAwake)
  }

  async function client(): Promise<void> {
    const socket = connect({ port: options.port, host: '127.0.0.1', noDelay: true })
    try {
      await exchange(socket)
    } finally {
      socket.destroy()
    }
  }

  function exchange(socket: Socket): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    let sentAt = 0
    let pending: Buffer | null = null
    const send = (): void => {
      sentAt = performance.now()
      if (sentAt >= end) return resolve()
      socket.write(options.request())
    }
    socket.on('connect', send)
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('The server closed a connection under load')))
    socket.on('data', (chunk: Buffer) => {
      const bytes = pending === null ? chunk : Buffer.concat([pending, chunk])
      const length = answerLength(bytes)
      if (length === null || bytes.length < length) {
        pending = bytes
        return
      }
      pending = null
      const now = performance.now()
      if (statusOf(bytes) !== options.status) failures++
      if (sentAt >= begin && now < end) latencies.add((now - sentAt) * 1000)
      send()
    })
    return promise
  }
}

function statusOf(answer: Buffer): number {
  return Number(answer.toString('latin1', 9, 12))
}

/** Bytes of the whole answer, or null while its header section is incomplete. */
function answerLength(bytes: Buffer): number | null {
  const headerSectionEnd = bytes.indexOf('\r\n\r\n')
  if (headerSectionEnd < 0) return null
  const headerSection = bytes.toString('latin1', 0, headerSectionEnd).toLowerCase()
  const at = headerSection.indexOf('\r\ncontent-length:')
  if (at < 0) throw new Error('An answer has no content length')
  return headerSectionEnd + 4 + parseInt(headerSection.slice(at + 17), 10)
}

export class LatencyHistogram {
  readonly #fine = new Uint32Array(100_000)
  readonly #coarse = new Uint32Array(100_000)
  count = 0

  add(us: number): void {
    this.count++
    if (us < 100_000) this.#fine[us | 0]!++
    else this.#coarse[Math.min((us / 100) | 0, 99_999)]!++
  }

  quantile(share: number): number {
    let left = Math.ceil(this.count * share)
    for (const [us, count] of this.#fine.entries()) if ((left -= count) <= 0) return us
    for (const [at, count] of this.#coarse.entries()) if ((left -= count) <= 0) return at * 100
    return 0
  }
}
