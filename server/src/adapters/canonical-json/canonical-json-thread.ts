import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { CANONICAL_IDLE_MS, CANONICAL_INLINE_CHARS } from '../../base/limits.ts'
import type { CanonicalJson } from '../../world/canonical-json.ts'
import { canonical } from './canonical.ts'

/**
 * Puts long texts in order on a thread of its own, which is there while there are any: five megabytes take a quarter of
 * a second, and that long nobody else would be answered. Decision 0041.
 */
export class CanonicalJsonThread implements CanonicalJson {
  readonly #waiting: PromiseWithResolvers<Uint8Array>[] = []
  #worker: Worker | null = null
  #idle: NodeJS.Timeout | undefined

  async render(text: string): Promise<Uint8Array> {
    if (text.length <= CANONICAL_INLINE_CHARS) return canonical(text)
    clearTimeout(this.#idle)
    this.#worker ??= this.#start()
    const rendered = Promise.withResolvers<Uint8Array>()
    this.#waiting.push(rendered)
    this.#worker.postMessage(text)
    return await rendered.promise
  }

  async close(): Promise<void> {
    clearTimeout(this.#idle)
    await this.#worker?.terminate()
  }

  #start(): Worker {
    const url = new URL(`./thread${extname(import.meta.url)}`, import.meta.url)
    const resourceLimits = { maxOldGenerationSizeMb: HEAP_MB }
    const worker = new Worker(url, { resourceLimits })
    let fault: unknown = new Error('The thread was ended')
    worker.on('message', (rendered: Uint8Array) => {
      this.#waiting.shift()!.resolve(rendered)
      if (this.#waiting.length > 0) return
      this.#idle = setTimeout(() => void worker.terminate(), CANONICAL_IDLE_MS).unref()
    })
    worker.on('error', (error) => (fault = error))
    worker.on('exit', () => {
      this.#worker = null
      for (const it of this.#waiting.splice(0)) it.reject(fault)
    })
    return worker
  }
}

/** Some fifty times the longest text: so much the smallest values take. */
const HEAP_MB = 512
