import { once } from 'node:events'
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Change, Conflict, StoredToken } from '../../world/store.ts'
import { isUuid } from '../../base/id.ts'
import { BatchPacker } from './batch.ts'
import { conflictOf, isNamedByUuid, packChange, packToken, type TokenContext } from './changes.ts'
import { LongList, SLICE_TOKENS_MAX, tokensOf, type Outcome } from './long-list.ts'
import { STATEMENT } from './statements.ts'
import type { WriterData, WriterReply, WriterRequest } from './writer.ts'

export interface QueueOptions extends WriterData {
  /** The first number no unit has had. */
  readonly firstUnit: number
  readonly uuidNames: boolean
  /** Called once, when writing has stopped for good. */
  readonly onFault: (reason: Error) => void
}

/** Somebody who waits for a commit. */
interface Waiting {
  readonly changes: readonly Change[]
  readonly resolve: (conflict: Conflict | null) => void
  readonly reject: (reason: Error) => void
}

interface WaitingList extends Waiting {
  readonly list: LongList
}

/**
 * Gathers commits into batches for the writer: group commit, with nobody waiting for a clock.
 *
 * At most one batch is under way. Meanwhile the next one fills; it leaves when the one before is back
 * and the event loop has served what was ready, so that whoever was just answered is in it again. Each
 * batch takes along one slice of one long list, after the short commits.
 */
export class CommitQueue {
  readonly #worker: Worker
  readonly #exit: Promise<unknown>
  readonly #onFault: (reason: Error) => void
  readonly #packer = new BatchPacker()
  readonly #buffers: ArrayBuffer[] = []
  #filling: Waiting[] = []
  #sent: { commits: Waiting[]; list: WaitingList | null } | null = null
  #lists: WaitingList[] = []
  #nextUnit: number
  #uuidNames: boolean
  #flushing = false
  #fault: Error | null = null
  #gone = false
  #closing: PromiseWithResolvers<void> | null = null

  /** Starts the writer; resolves when it is ready to write. */
  static async start(options: QueueOptions): Promise<CommitQueue> {
    const { databasePath, probe } = options
    const url = new URL(`./writer${extname(import.meta.url)}`, import.meta.url)
    const worker = new Worker(url, { workerData: { databasePath, probe } satisfies WriterData })
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    worker.once('message', () => resolve())
    worker.once('error', reject)
    await promise
    worker.off('error', reject)
    return new CommitQueue(worker, options)
  }

  private constructor(worker: Worker, { firstUnit, uuidNames, onFault }: QueueOptions) {
    this.#worker = worker
    this.#exit = once(worker, 'exit')
    this.#onFault = onFault
    this.#nextUnit = firstUnit
    this.#uuidNames = uuidNames
    worker.on('message', (reply: WriterReply) => this.#receive(reply))
    worker.on('error', (cause) => {
      this.#stop(new Error('The writer died: the outcome is not known', { cause }))
    })
    worker.on('exit', () => {
      this.#gone = true
      this.#stop(new Error('The writer is gone: the outcome is not known'))
    })
  }

  /** Resolves as Store.commit() does. */
  submit(tenantId: string, changes: readonly Change[]): Promise<Conflict | null> {
    const { promise, resolve, reject } = Promise.withResolvers<Conflict | null>()
    try {
      this.#refuseWhenStopped()
      const waiting = { changes, resolve, reject }
      const length = countAndCheck(changes)
      if (length > SLICE_TOKENS_MAX) {
        const list = new LongList(tenantId, this.#nextUnit++, changes)
        this.#noteUuidNames(tokensOf(changes))
        this.#lists.push({ ...waiting, list })
      } else {
        this.#pack(tenantId, changes)
        this.#filling.push(waiting)
      }
      this.#flushSoon()
    } catch (error) {
      reject(error)
    }
    return promise
  }

  /** Resolves when a row has been written for the sake of it. */
  beat(): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<Conflict | null>()
    try {
      this.#refuseWhenStopped()
      this.#packer.open()
      this.#packer.step(STATEMENT.beat, [])
      this.#filling.push({ changes: [], resolve, reject })
      this.#flushSoon()
    } catch (error) {
      reject(error)
    }
    return promise
  }

  /** Takes no more; resolves when what is in flight has its outcome, and the writer is gone. */
  async close(beforeLast: () => void): Promise<void> {
    this.#closing = Promise.withResolvers()
    if (this.#fault === null) {
      this.#flushSoon()
      await this.#closing.promise
    }
    beforeLast()
    if (this.#gone) return
    this.#worker.postMessage(null)
    await this.#exit
  }

  #pack(tenantId: string, changes: readonly Change[]): void {
    const packer = this.#packer
    packer.open()
    try {
      for (const change of changes) {
        if (change.kind !== 'insert-tokens') packChange(packer, tenantId, change)
        else this.#packTokens({ tenantId, unit: null, uuidNames: false }, change.tokens)
      }
    } catch (error) {
      packer.cancel()
      throw error
    }
  }

  #packTokens(context: TokenContext, tokens: readonly StoredToken[]): void {
    this.#noteUuidNames(tokens)
    const { tenantId, unit } = context
    const now = { tenantId, unit, uuidNames: this.#uuidNames }
    for (const token of tokens) packToken(this.#packer, now, token)
  }

  #noteUuidNames(tokens: readonly StoredToken[]): void {
    this.#uuidNames ||= tokens.some(isNamedByUuid)
  }

  #flushSoon(): void {
    if (this.#sent !== null || this.#flushing) return
    this.#flushing = true
    setImmediate(() => {
      this.#flushing = false
      this.#flush()
    })
  }

  #flush(): void {
    if (this.#fault !== null) return
    const list = this.#lists.shift() ?? null
    list?.list.pack(this.#packer, this.#uuidNames)
    if (this.#filling.length === 0 && list === null) {
      this.#closing?.resolve()
      return
    }
    this.#sent = { commits: this.#filling, list }
    this.#filling = []
    const batch = this.#packer.take(this.#buffers.pop() ?? null)
    this.#worker.postMessage(batch satisfies WriterRequest, [batch])
  }

  #receive({ refused, failed, unknown, buffer }: WriterReply): void {
    if (this.#sent === null) return
    const { commits, list } = this.#sent
    this.#sent = null
    this.#buffers.push(buffer)
    if (unknown !== undefined) {
      const reason = new Error(`Cannot tell whether it was written: ${unknown.message}`)
      for (const it of commits) it.reject(reason)
      // Its unit stays open, unseen, until the next start removes it.
      list?.reject(reason)
      if (!unknown.mayGoOn) this.#stop(reason)
    } else {
      const listPlace = commits.length
      let listRefusal: Parameters<LongList['advance']>[0] = null
      const settled = new Set<number>()
      for (const it of refused) {
        if (it.commit === listPlace) listRefusal = it
        else {
          const { changes, resolve } = commits[it.commit]!
          resolve(conflictOf(it, tokensOf(changes)))
        }
        settled.add(it.commit)
      }
      for (const { commit, message } of failed) {
        const reason = new Error(`Cannot commit, and nothing was changed: ${message}`)
        if (commit === listPlace) listRefusal = reason
        else commits[commit]!.reject(reason)
        settled.add(commit)
      }
      for (const [n, it] of commits.entries()) if (!settled.has(n)) it.resolve(null)
      if (list !== null) this.#advance(list, listRefusal)
    }
    this.#flushSoon()
  }

  #advance(waiting: WaitingList, refusal: Parameters<LongList['advance']>[0]): void {
    const end = waiting.list.advance(refusal)
    if (end === null) this.#lists.push(waiting)
    else settle(waiting, end.outcome)
  }

  #refuseWhenStopped(): void {
    if (this.#fault !== null) throw this.#fault
    if (this.#closing !== null) throw new Error('Cannot commit: the store is closed')
  }

  #stop(reason: Error): void {
    if (this.#fault !== null) return
    this.#fault = reason
    const waiting = [...(this.#sent?.commits ?? []), ...this.#filling, ...this.#lists]
    if (this.#sent?.list) waiting.push(this.#sent.list)
    for (const it of waiting) it.reject(reason)
    this.#sent = null
    this.#filling = []
    this.#lists = []
    if (this.#closing === null) this.#onFault(reason)
    else this.#closing.resolve()
  }
}

function settle({ resolve, reject }: Waiting, outcome: Outcome): void {
  if (outcome instanceof Error) reject(outcome)
  else resolve(outcome)
}

/** Returns how many tokens there are; throws when one could not be kept as it is. */
function countAndCheck(changes: readonly Change[]): number {
  let count = 0
  for (const change of changes) {
    if (change.kind !== 'insert-tokens') continue
    count += change.tokens.length
    for (const { serial } of change.tokens) {
      if (!isUuid(serial)) throw new TypeError('Cannot commit: a token’s serial is no uuid')
    }
  }
  return count
}
