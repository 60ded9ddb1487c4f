import { Worker } from 'node:worker_threads'
import { FairSemaphore } from '../../base/fair-semaphore.ts'

interface WorkerThreadSettings {
  /** The bound of its heap. */
  readonly heapMb: number
  /** How long it may be idle before it is ended. */
  readonly idleMs: number
}

/**
 * A thread for work that would block the event loop, started on demand. Its program answers each message with one message.
 *
 * It has one task at a time, so that a task it dies of affects no other, and serves the owners round-robin.
 */
export class WorkerThread<Task, Answer> {
  readonly #turns = new FairSemaphore({ max: 1 })
  readonly #program: URL
  readonly #settings: WorkerThreadSettings
  #worker: Worker | null = null
  #idle: NodeJS.Timeout | undefined
  #closed = false

  constructor(program: URL, settings: WorkerThreadSettings) {
    this.#program = program
    this.#settings = settings
  }

  /** Resolves with the thread's answer; rejects if it dies of the task, or is closed. */
  async run(owner: string, task: Task): Promise<Answer> {
    return await this.#turns.run(owner, () => this.#runThere(task))
  }

  /** Ends the thread. Tasks in progress or submitted later are rejected. */
  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#idle)
    await this.#worker?.terminate()
  }

  async #runThere(task: Task): Promise<Answer> {
    if (this.#closed) throw new Error(ENDED)
    clearTimeout(this.#idle)
    const worker = (this.#worker ??= this.#start())
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    const end = (): void => reject(new Error(ENDED))
    worker.on('message', resolve).on('error', reject).on('exit', end)
    try {
      worker.postMessage(task)
      return await promise
    } finally {
      worker.off('message', resolve).off('error', reject).off('exit', end)
      if (!this.#closed) {
        this.#idle = setTimeout(() => this.#rest(), this.#settings.idleMs).unref()
      }
    }
  }

  #start(): Worker {
    const resourceLimits = { maxOldGenerationSizeMb: this.#settings.heapMb }
    const worker = new Worker(this.#program, { resourceLimits })
    const forget = (): void => {
      if (this.#worker === worker) this.#worker = null
    }
    return worker.on('error', forget).on('exit', forget)
  }

  /** Terminating takes a while: a task that arrives meanwhile starts another thread. */
  #rest(): void {
    const worker = this.#worker
    this.#worker = null
    void worker?.terminate()
  }
}

const ENDED = 'The thread was ended'
