import { FairSemaphore } from '../base/fair-semaphore.ts'
import { ROTATIONS_AT_ONCE } from '../base/limits.ts'
import {
  isRotationUnfinished,
  rotateDataKey,
  unfinishedRotations,
  type RotationProgress,
} from '../key-rotation/rotate-data-key.ts'
import type { KeyMaker } from '../ports/keyring.ts'
import { isStoreOutage } from '../ports/store-outage.ts'
import type { World } from '../ports/world.ts'

type Hear = (progress: RotationProgress) => void

interface RunningRotation {
  readonly done: Promise<void>
  readonly hearing: Set<Hear>
}

/** The rotations of data keys in progress: at most one per tenant; a second request joins the first. */
export class Rotations {
  readonly #world: Pick<World, 'clock' | 'log' | 'store'>
  readonly #maker: KeyMaker
  readonly #retirementMs: number | undefined
  readonly #running = new Map<string, RunningRotation>()
  /** Tenants whose rotation ended because the store did not answer. */
  readonly #interrupted = new Set<string>()
  readonly #stopping = new AbortController()

  constructor(
    world: Pick<World, 'clock' | 'log' | 'store'>,
    maker: KeyMaker,
    retirementMs?: number,
  ) {
    this.#world = world
    this.#maker = maker
    this.#retirementMs = retirementMs
  }

  /** Resolves once the tenant has a new data key and nothing is left under an older one. */
  async rotate(tenantId: string, hear: Hear): Promise<void> {
    const it = this.#running.get(tenantId) ?? this.#begin(tenantId)
    it.hearing.add(hear)
    try {
      await it.done
    } finally {
      it.hearing.delete(hear)
    }
  }

  /**
   * Rotates each tenant's key, several concurrently, because most of the time is waiting. Resolves when all are done; a
   * failure does not stop the others, and rejects with the first error in the end.
   */
  async rotateAll(
    tenantIds: readonly string[],
    hear: Hear,
    done: (tenantId: string) => void,
  ): Promise<void> {
    const slots = new FairSemaphore({ max: ROTATIONS_AT_ONCE })
    const failures: unknown[] = []
    const rotateInTurn = (id: string): Promise<void> =>
      slots.run('', async () => {
        try {
          // Otherwise a stopping service would create a key for each of the rest.
          this.#stopping.signal.throwIfAborted()
          await this.rotate(id, hear)
          done(id)
        } catch (error) {
          failures.push(error)
        }
      })
    await Promise.all(tenantIds.map(rotateInTurn))
    if (failures.length > 0) throw failures[0]
  }

  /** Continues the rotations interrupted by the end of the previous process. */
  async resume(): Promise<void> {
    let unfinished: readonly string[] = []
    try {
      unfinished = await unfinishedRotations(this.#world)
    } catch (error) {
      this.#world.log.error('key_rotation_failed', error)
    }
    const ignore = (): void => {}
    // Failures are logged.
    await this.rotateAll(unfinished, ignore, ignore).catch(ignore)
  }

  /**
   * Continues the rotations that ended because the store did not answer. To be called now and then; never rejects. A rotation that
   * failed for another reason would fail again.
   */
  async resumeInterrupted(): Promise<void> {
    const ignore = (): void => {}
    for (const id of this.#interrupted) {
      if (this.#stopping.signal.aborted) return
      try {
        if (await isRotationUnfinished(this.#world, id)) await this.rotate(id, ignore)
        this.#interrupted.delete(id)
      } catch {
        // Logged by the rotation; if the store still does not answer, the next call tries again.
      }
    }
  }

  /** Resolves once nothing is in flight. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await Promise.allSettled([...this.#running.values()].map((it) => it.done))
  }

  #begin(tenantId: string): RunningRotation {
    const hearing = new Set<Hear>()
    const done = rotateDataKey(this.#world, tenantId, {
      maker: this.#maker,
      pause: (ms) => pause(ms, this.#stopping.signal),
      report: (progress) => {
        for (const it of hearing) it(progress)
      },
      ...(this.#retirementMs === undefined ? {} : { retirementMs: this.#retirementMs }),
    })
      .catch((error: unknown) => {
        if (!this.#stopping.signal.aborted) {
          this.#world.log.error('key_rotation_failed', error, { tenant: tenantId })
        }
        if (isStoreOutage(error)) this.#interrupted.add(tenantId)
        else this.#interrupted.delete(tenantId)
        throw error
      })
      .finally(() => this.#running.delete(tenantId))
    const running = { done, hearing }
    this.#running.set(tenantId, running)
    return running
  }
}

/** Rejects if `signal` aborts before the time is over. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  if (ms === 0) return
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  const abort = (): void => reject(new Error('The service is stopping'))
  signal.addEventListener('abort', abort, { once: true })
  try {
    await promise
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
  }
}
