import { Agent, request } from 'node:http'
import type { Json, JsonObject } from '../src/base/json.ts'
import type { OperationOutcome } from './ledger.ts'
import type { WorkloadOperation } from './workload.ts'

interface VaultReply {
  readonly status: number
  readonly body: Json
  readonly retryAfter: string | undefined
}

/** A finished call, for measurements. */
export interface ReportedCall {
  readonly about: string
  /** Null when there was no answer. */
  readonly status: number | null
  readonly retryAfter: string | undefined
  readonly ms: number
}

export interface VaultClientOptions {
  /** Whether the store may be away for a while: 503 with a time to try again is an answer then, as none is. */
  readonly mayBeAway?: boolean
  readonly onCall?: (call: ReportedCall) => void
}

/** A caller of one running server; made anew after each restart. */
export class VaultClient {
  readonly #port: number
  readonly #keys: Keys
  readonly #options: VaultClientOptions
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 64 })

  constructor(port: number, keys: Keys, options: VaultClientOptions = {}) {
    this.#port = port
    this.#keys = keys
    this.#options = options
  }

  /** Sends an operation; never rejects: what went wrong is an outcome, too. */
  async send({ requests, sent, tokensOf }: WorkloadOperation): Promise<OperationOutcome> {
    const answers: Json[] = []
    for (const [n, { method, path, body, within }] of requests.entries()) {
      const headers: Record<string, string> = {}
      // Asked for again, all of them are answered as before, as far as they were done.
      if (sent.idempotencyKey !== null)
        headers['bt-idempotency-key'] = `${sent.idempotencyKey}.${n}`
      if (within !== undefined) {
        headers['bt-transaction-id'] = (answers[within] as { id: string }).id
      }
      let reply: VaultReply
      try {
        reply = await this.#call(method, path(answers), this.#keys.write, body, headers)
      } catch (error) {
        return { outcome: 'unknown', why: (error as NodeJS.ErrnoException).code ?? String(error) }
      }
      const { status, retryAfter } = reply
      if (status === 503 && retryAfter !== undefined && this.#options.mayBeAway === true) {
        return { outcome: 'unknown', why: 'away' }
      }
      if (status >= 500) return { outcome: 'unknown', why: 'status', status }
      if (status >= 400) return { outcome: 'refused', status }
      answers.push(reply.body)
    }
    const tokens = tokensOf(answers)
    return tokens === null ? NOTHING : { outcome: 'acked', tokens }
  }

  /** The token in the clear, or null when there is none. Rejects when the server is gone. */
  async read(id: string): Promise<JsonObject | null> {
    const path = `/tokens/${encodeURIComponent(id)}`
    const { status, body } = await this.#call('GET', path, this.#keys.read)
    if (status === 404) return null
    if (status !== 200) throw new Error(`Cannot read a token: status ${status}`)
    return body as JsonObject
  }

  /** Makes an application and returns its key. */
  async makeApplication(managementKey: string, application: JsonObject): Promise<string> {
    const { status, body } = await this.#call('POST', '/applications', managementKey, application)
    if (status !== 201) throw new Error(`Cannot make an application: status ${status}`)
    return (body as JsonObject)['key'] as string
  }

  close(): void {
    this.#agent.destroy()
  }

  async #call(...[method, path, ...rest]: CallArguments): Promise<VaultReply> {
    const begun = performance.now()
    const told = { about: `${method} ${path}`, status: null, retryAfter: undefined }
    let reply: VaultReply | null = null
    try {
      return (reply = await this.#ask(method, path, ...rest))
    } finally {
      this.#options.onCall?.({ ...told, ...reply, ms: performance.now() - begun })
    }
  }

  async #ask(...[method, path, key, payload, headers = {}]: CallArguments): Promise<VaultReply> {
    const { promise, resolve, reject } = Promise.withResolvers<VaultReply>()
    const bytes = payload === undefined ? null : Buffer.from(JSON.stringify(payload))
    const asked = request({
      host: '127.0.0.1',
      port: this.#port,
      agent: this.#agent,
      method,
      path,
      headers: {
        'bt-api-key': key,
        ...(bytes === null
          ? {}
          : {
              'content-type':
                method === 'PATCH' ? 'application/merge-patch+json' : 'application/json',
              'content-length': bytes.length,
            }),
        ...headers,
      },
    })
    asked.on('error', reject)
    asked.setTimeout(HANGS_MS, () => asked.destroy(new Error('no answer at all')))
    asked.on('response', (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        if (!response.complete) return reject(new Error('half an answer'))
        resolve({
          status: response.statusCode!,
          retryAfter: response.headers['retry-after'],
          body: chunks.length === 0 ? null : (JSON.parse(Buffer.concat(chunks).toString()) as Json),
        })
      })
    })
    asked.end(bytes)
    return await promise
  }
}

/** Longer than anything may take. */
const HANGS_MS = 30_000

type CallArguments = [
  method: string,
  path: string,
  key: string,
  payload?: Json,
  headers?: Record<string, string>,
]

/** The tokens were taken back or never committed: they must never become visible. */
const NOTHING: OperationOutcome = { outcome: 'refused', status: 200 }

export interface Keys {
  /** May create, change and delete tokens everywhere. */
  readonly write: string
  /** Sees all of them in the clear. */
  readonly read: string
}

/** Makes the two applications the harness calls with. */
export async function makeKeys(port: number, managementKey: string): Promise<Keys> {
  const client = new VaultClient(port, { write: '', read: '' })
  try {
    const write = await client.makeApplication(managementKey, {
      name: 'writer',
      type: 'private',
      permissions: ['token:create', 'token:update', 'token:delete'],
    })
    const rule = { priority: 1, container: '/', transform: 'reveal', permissions: ['token:read'] }
    const read = await client.makeApplication(managementKey, {
      name: 'reader',
      type: 'private',
      rules: [rule],
    })
    return { write, read }
  } finally {
    client.close()
  }
}
