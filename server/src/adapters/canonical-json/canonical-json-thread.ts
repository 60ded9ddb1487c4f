import { extname } from 'node:path'
import { CANONICAL_IDLE_MS, CANONICAL_INLINE_CHARS } from '../../base/limits.ts'
import type { CanonicalJson } from '../../ports/canonical-json.ts'
import { WorkerThread } from '../worker-thread/worker-thread.ts'
import { canonical } from './canonical.ts'

/**
 * Canonicalizes long texts on a thread of its own. Five megabytes take a quarter of a second, or up to four seconds if made of
 * the smallest values, which would block all other requests. Decision 0041.
 */
export class CanonicalJsonThread implements CanonicalJson {
  readonly #thread: WorkerThread<string, Uint8Array>

  constructor({ heapMb = HEAP_MB }: { readonly heapMb?: number } = {}) {
    const program = new URL(`./thread${extname(import.meta.url)}`, import.meta.url)
    this.#thread = new WorkerThread(program, { heapMb, idleMs: CANONICAL_IDLE_MS })
  }

  async render(tenantId: string, text: string): Promise<Uint8Array> {
    if (text.length <= CANONICAL_INLINE_CHARS) return canonical(text)
    return await this.#thread.run(tenantId, text)
  }

  async close(): Promise<void> {
    await this.#thread.close()
  }
}

/** Some fifty times the longest text, as much as the smallest values need. */
const HEAP_MB = 512
