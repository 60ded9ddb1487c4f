import { extname } from 'node:path'
import { REACTOR_RESULT_IDLE_MS, REACTOR_RESULT_INLINE_BYTES } from '../../base/limits.ts'
import type { ReactorOutcome } from '../../ports/reactor-runner.ts'
import { WorkerThread } from '../worker-thread/worker-thread.ts'
import { outcomeOf, readResult, type UnreadResult, type WrittenResult } from './read-result.ts'

/** Reads what guests return: short results at once, long ones on a thread of their own. Decision 0090. */
export class ResultReader {
  readonly #thread: WorkerThread<Uint8Array, WrittenResult | UnreadResult>

  constructor() {
    const program = new URL(`./result-thread${extname(import.meta.url)}`, import.meta.url)
    this.#thread = new WorkerThread(program, { heapMb: HEAP_MB, idleMs: REACTOR_RESULT_IDLE_MS })
  }

  /** Returns the outcome of a run that returned `bytes`. A promise rejects if the reader is closed. */
  read(tenantId: string, bytes: Uint8Array): ReactorOutcome | Promise<ReactorOutcome> {
    if (bytes.length <= REACTOR_RESULT_INLINE_BYTES) return outcomeOf(readResult(bytes))
    return this.#thread.run(tenantId, bytes).then(outcomeOf)
  }

  async close(): Promise<void> {
    await this.#thread.close()
  }
}

/** Several times what the longest result with the most values needs. */
const HEAP_MB = 256
