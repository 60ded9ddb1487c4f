import { LRUCache } from 'lru-cache'
import { JOB_ROW_BYTES, JOB_SIZES_MS, JOB_SIZES_FULL_MS } from '../../base/limits.ts'
import { ServiceError } from '../../base/service-error.ts'
import { bytesOfJob, type StoredJob } from '../../ports/jobs.ts'
import type { World } from '../../ports/world.ts'

/** What jobs of one tenant take up, in bytes. */
interface Sizes {
  waiting: number
  finished: number
  /** On the clock of durations. */
  readonly measuredAt: number
}

/**
 * Bounds the bytes that the jobs of a tenant take up in the store, with their arguments and results.
 *
 * Between two measurements it counts what this server adds and removes, so that requests that come together do not all see
 * the same room. What other servers do is seen by the next measurement. Decision 0093.
 */
export class JobStorage {
  readonly #world: Pick<World, 'clock' | 'store'>
  readonly #bytesMax: number
  readonly #sizes = new LRUCache<string, Promise<Sizes>>({ max: TENANTS_KNOWN })

  constructor(world: Pick<World, 'clock' | 'store'>, bytesMax: number) {
    this.#world = world
    this.#bytesMax = bytesMax
  }

  /** Throws `job_storage_full` if nothing can be accepted. Reads nothing in most calls, so that a flood is cheap to refuse. */
  async requireRoom(tenantId: string): Promise<void> {
    await this.#reserve(tenantId, 0)
  }

  /** Counts a job that is about to be accepted. Throws `job_storage_full` if there is no room for it. */
  async accept(tenantId: string, job: StoredJob): Promise<void> {
    await this.#reserve(tenantId, sizeOf(job))
  }

  /**
   * Whether results leave room for another, which may be as long as any. Arguments that wait do not count here: only runs
   * make them go.
   */
  async hasRoomForResult(tenantId: string): Promise<boolean> {
    const isFull = ({ finished }: Sizes): boolean => finished >= this.#bytesMax
    return !isFull(await this.#read(tenantId, isFull))
  }

  /** Counts the result of a job that is about to be stored. */
  async finish(tenantId: string, before: StoredJob, after: StoredJob): Promise<void> {
    await this.#adjust(tenantId, { waiting: -sizeOf(before), finished: sizeOf(after) })
  }

  /** Counts no longer a finished job that was deleted. */
  async remove(tenantId: string, job: StoredJob): Promise<void> {
    await this.#adjust(tenantId, { waiting: 0, finished: -sizeOf(job) })
  }

  /** Before the first measurement there is nothing to adjust. */
  async #adjust(tenantId: string, by: Omit<Sizes, 'measuredAt'>): Promise<void> {
    const sizes = await this.#sizes.get(tenantId)?.catch(() => undefined)
    if (sizes === undefined) return
    sizes.waiting += by.waiting
    sizes.finished += by.finished
  }

  async #reserve(tenantId: string, bytes: number): Promise<void> {
    const isFull = ({ waiting, finished }: Sizes): boolean =>
      waiting + finished + bytes > this.#bytesMax
    const sizes = await this.#read(tenantId, isFull)
    if (isFull(sizes)) throw new ServiceError('job_storage_full')
    sizes.waiting += bytes
  }

  /** Measures again what is old; sooner if it is full, because jobs may have gone. */
  async #read(tenantId: string, isFull: (sizes: Sizes) => boolean): Promise<Sizes> {
    const { clock } = this.#world
    const askedAt = clock.elapsed()
    for (;;) {
      const last = this.#sizes.get(tenantId)
      const known = await last
      if (known !== undefined) {
        const age = clock.elapsed() - known.measuredAt
        if (age < (isFull(known) ? JOB_SIZES_FULL_MS : JOB_SIZES_MS)) return known
        // It took longer than it is good for.
        if (known.measuredAt >= askedAt) return known
      }
      if (this.#sizes.get(tenantId) !== last) continue
      const measuring = this.#measure(tenantId)
      this.#sizes.set(tenantId, measuring)
      measuring.catch(() => this.#sizes.delete(tenantId))
    }
  }

  async #measure(tenantId: string): Promise<Sizes> {
    const measuredAt = this.#world.clock.elapsed()
    const { waiting, finished } = await this.#world.store.jobs.sizes(tenantId)
    return { waiting: bytesOf(waiting), finished: bytesOf(finished), measuredAt }
  }
}

const TENANTS_KNOWN = 10_000

function sizeOf(job: StoredJob): number {
  return bytesOfJob(job) + JOB_ROW_BYTES
}

function bytesOf({ count, bytes }: { readonly count: number; readonly bytes: number }): number {
  return bytes + count * JOB_ROW_BYTES
}
