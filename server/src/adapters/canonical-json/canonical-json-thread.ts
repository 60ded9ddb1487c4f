import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { FairQueue } from '../../base/fair-queue.ts'
import { CANONICAL_IDLE_MS, CANONICAL_INLINE_CHARS } from '../../base/limits.ts'
import type { CanonicalJson } from '../../ports/canonical-json.ts'
import { canonical } from './canonical.ts'

/**
 * Canonicalizes long texts on a thread of its own, started on demand. Five megabytes take a quarter
 * of a second, or up to four seconds if made of the smallest values, which would block all other
 * requests. Decision 0041.
 *
 * The thread has one text at a time, so that a text it dies of affects no other.
 */
export class CanonicalJsonThread implements CanonicalJson {
  readonly #queue = new FairQueue()
  readonly #heapMb: number
  #worker: Worker | null = null
  #idle: NodeJS.Timeout | undefined
  #closed = false

  constructor({ heapMb = HEAP_MB }: { readonly heapMb?: number } = {}) {
    this.#heapMb = heapMb
  }

  async render(tenantId: string, text: string): Promise<Uint8Array> {
    if (text.length <= CANONICAL_INLINE_CHARS) return canonical(text)
    return await this.#queue.run(tenantId, () => this.#renderThere(text))
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#idle)
    await this.#worker?.terminate()
  }

  async #renderThere(text: string): Promise<Uint8Array> {
    if (this.#closed) throw new Error(ENDED)
    clearTimeout(this.#idle)
    const worker = (this.#worker ??= this.#start())
    const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>()
    const end = (): void => reject(new Error(ENDED))
    worker.on('message', resolve).on('error', reject).on('exit', end)
    try {
      worker.postMessage(text)
      return await promise
    } finally {
      worker.off('message', resolve).off('error', reject).off('exit', end)
      if (!this.#closed) this.#idle = setTimeout(() => this.#rest(), CANONICAL_IDLE_MS).unref()
    }
  }

  #start(): Worker {
    const url = new URL(`./thread${extname(import.meta.url)}`, import.meta.url)
    const worker = new Worker(url, { resourceLimits: { maxOldGenerationSizeMb: this.#heapMb } })
    const forget = (): void => {
      if (this.#worker === worker) this.#worker = null
    }
    return worker.on('error', forget).on('exit', forget)
  }

  /** Terminating takes a while: a text that arrives meanwhile starts another thread. */
  #rest(): void {
    const worker = this.#worker
    this.#worker = null
    void worker?.terminate()
  }
}

const ENDED = 'The thread was ended'

/** Some fifty times the longest text, as much as the smallest values need. */
const HEAP_MB = 512
