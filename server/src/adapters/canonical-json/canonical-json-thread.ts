import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { FairQueue } from '../../base/fair-queue.ts'
import { CANONICAL_IDLE_MS, CANONICAL_INLINE_CHARS } from '../../base/limits.ts'
import type { CanonicalJson } from '../../ports/canonical-json.ts'
import { canonical } from './canonical.ts'

/**
 * Puts long texts in order on a thread of its own, which is there while there are any: five megabytes take a quarter of
 * a second, of the smallest values up to four, and that long nobody else would be answered. Decision 0041.
 *
 * It has one text at a time, so that one it dies of takes no other along.
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

  /** It takes a while to end: whoever comes meanwhile begins another. */
  #rest(): void {
    const worker = this.#worker
    this.#worker = null
    void worker?.terminate()
  }
}

const ENDED = 'The thread was ended'

/** Some fifty times the longest text: so much the smallest values take. */
const HEAP_MB = 512
