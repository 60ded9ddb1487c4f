import type { Caller } from '../base/access.ts'
import { LONG_BYTES_MIN, SHOWN_DATA_BYTES_MAX } from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'
import type { StoredToken } from '../world/stored.ts'
import { TooMuchData } from '../world/too-much-data.ts'

/**
 * What one request reads of the data of tokens that it names: at once while that is short, and else when it is its turn
 * among those of its tenant that read much. What was found too long is let go of meanwhile.
 */
export class Reading {
  readonly #caller: Pick<Caller, 'room'>
  #bytes = 0
  #long = false

  constructor(caller: Pick<Caller, 'room'>) {
    this.#caller = caller
  }

  /**
   * Returns what `find` finds, which is told how many bytes it may read.
   *
   * Throws `answer_too_large` when the request reads more than SHOWN_DATA_BYTES_MAX in all, and `tenant_busy`.
   */
  async read(find: Find): Promise<readonly StoredToken[]> {
    if (!this.#long) {
      try {
        return this.#count(await find(LONG_BYTES_MIN - this.#bytes))
      } catch (error) {
        if (!(error instanceof TooMuchData)) throw error
      }
      await this.#caller.room?.().takeLong()
      this.#long = true
    }
    return this.#count(await answerable(find(SHOWN_DATA_BYTES_MAX - this.#bytes)))
  }

  #count(found: readonly StoredToken[]): readonly StoredToken[] {
    this.#bytes += bytesOf(found)
    return found
  }
}

type Find = (bytesMax: number) => Promise<readonly StoredToken[]>

/** Rejects with `answer_too_large` where `found` is too much data to be read at once. */
export async function answerable<Found>(found: Promise<Found>): Promise<Found> {
  try {
    return await found
  } catch (cause) {
    if (cause instanceof TooMuchData) {
      throw new ServiceError('answer_too_large', undefined, { cause })
    }
    throw cause
  }
}

/** Bytes of the data of `tokens`. */
export function bytesOf(tokens: readonly StoredToken[]): number {
  let bytes = 0
  for (const { data } of tokens) bytes += data.length
  return bytes
}
