import {
  rotateDataKey,
  unfinishedRotations,
  type RotationProgress,
} from '../keys/rotate-data-key.ts'
import type { KeyMaker } from '../world/keyring.ts'
import type { World } from '../world/world.ts'

type Hear = (progress: RotationProgress) => void

interface UnderWay {
  readonly done: Promise<void>
  readonly hearing: Set<Hear>
}

/**
 * The rotations of data keys that are under way here: one for each tenant at most, and whoever asks for
 * another one joins it.
 */
export class Rotations {
  readonly #world: Pick<World, 'clock' | 'log' | 'store'>
  readonly #maker: KeyMaker
  readonly #retirementMs: number | undefined
  readonly #underWay = new Map<string, UnderWay>()
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

  /** Resolves when the tenant has a new data key and nothing is left under an older one. */
  async rotate(tenantId: string, hear: Hear): Promise<void> {
    const it = this.#underWay.get(tenantId) ?? this.#begin(tenantId)
    it.hearing.add(hear)
    try {
      await it.done
    } finally {
      it.hearing.delete(hear)
    }
  }

  /** Goes on with what was interrupted when the process before this one ended. */
  async resume(): Promise<void> {
    try {
      for (const id of await unfinishedRotations(this.#world)) {
        await this.rotate(id, () => {}).catch(() => {})
      }
    } catch (error) {
      this.#world.log.error('key_rotation_failed', error)
    }
  }

  /** Resolves when nothing is under way any more. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await Promise.allSettled([...this.#underWay.values()].map((it) => it.done))
  }

  #begin(tenantId: string): UnderWay {
    const hearing = new Set<Hear>()
    const done = rotateDataKey(this.#world, tenantId, {
      maker: this.#maker,
      pause: (ms) => pause(ms, this.#stopping.signal),
      tell: (progress) => {
        for (const it of hearing) it(progress)
      },
      ...(this.#retirementMs === undefined ? {} : { retirementMs: this.#retirementMs }),
    })
      .catch((error: unknown) => {
        if (!this.#stopping.signal.aborted) {
          this.#world.log.error('key_rotation_failed', error, { tenant: tenantId })
        }
        throw error
      })
      .finally(() => this.#underWay.delete(tenantId))
    const underWay = { done, hearing }
    this.#underWay.set(tenantId, underWay)
    return underWay
  }
}

/** Rejects when `signal` says so before the time is over. */
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
