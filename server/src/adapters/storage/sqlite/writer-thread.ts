import { extname } from 'node:path'
import type { Worker } from 'node:worker_threads'
import type { BatchResult } from './run-batch.ts'
import { startSmallThread } from './small-thread.ts'
import type { LogReply, WriterData, WriterReply, WriterRequest } from './writer.ts'

export type BatchOutcome = Pick<BatchResult, 'refused' | 'failed' | 'unknown'>

export interface WriterEvents {
  /** Called with the result of a batch, and its buffer. */
  readonly onWritten: (buffer: ArrayBuffer, outcome: BatchOutcome) => void
  /** Called once or twice when the thread has ended, also after end(). */
  readonly onGone: (reason: Error) => void
}

/** The writer thread, as the commit queue sees it. */
export class WriterThread {
  readonly #worker: Worker
  readonly #exit: Promise<unknown>
  #gone = false
  #truncating: PromiseWithResolvers<boolean> | null = null

  /** Resolves when the thread is ready to write. */
  static async start({ databasePath, probe }: WriterData): Promise<WriterThread> {
    const url = new URL(`./writer${extname(import.meta.url)}`, import.meta.url)
    const workerData: WriterData = { databasePath, probe }
    return new WriterThread(await startSmallThread(url, { workerData }))
  }

  private constructor(worker: Worker) {
    this.#worker = worker
    this.#exit = new Promise((resolve) => worker.once('exit', resolve))
  }

  listen({ onWritten, onGone }: WriterEvents): void {
    const ended = (reason: Error): void => {
      this.#truncating?.resolve(false)
      onGone(reason)
    }
    this.#worker.on('message', (reply: WriterReply | LogReply) => {
      if ('truncated' in reply) this.#truncating?.resolve(reply.truncated)
      else if (reply instanceof ArrayBuffer) onWritten(reply, ALL_MADE)
      else onWritten(reply.buffer, reply)
    })
    this.#worker.on('error', (cause) => {
      ended(new Error('The writer failed: the outcome is not known', { cause }))
    })
    this.#worker.on('exit', () => {
      this.#gone = true
      ended(new Error('The writer is gone: the outcome is not known'))
    })
  }

  /** Hands a batch over: `buffer` can no longer be used here until it comes back. */
  write(buffer: ArrayBuffer): void {
    this.#post(buffer, [buffer])
  }

  /** Resolves to whether the write-ahead log is empty now. */
  truncateLog(): Promise<boolean> {
    this.#truncating = Promise.withResolvers()
    this.#post('truncate', [])
    return this.#truncating.promise
  }

  /** Resolves when the thread has exited, after the batches it was given. */
  async end(): Promise<void> {
    if (!this.#gone) this.#post(null, [])
    await this.#exit
  }

  #post(request: WriterRequest, transfer: ArrayBuffer[]): void {
    this.#worker.postMessage(request, transfer)
  }
}

const ALL_MADE: BatchOutcome = { refused: [], failed: [] }
