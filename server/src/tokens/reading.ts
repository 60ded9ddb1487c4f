import type { RequestContext } from '../base/access.ts'
import { LARGE_BYTES_MIN, SHOWN_DATA_BYTES_MAX } from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'
import { CostBudget, type EvaluationContext } from '../expressions/template.ts'
import type { StoredToken } from '../ports/stored.ts'
import { TooMuchData } from '../ports/too-much-data.ts'
import type { World } from '../ports/world.ts'
import { readingEvaluationContext } from './shown-tokens.ts'

/**
 * What one request reads of the data of tokens that it names: at once while that is short, and else with
 * one of its tenant's slots for large reads. What was found too long is let go of meanwhile.
 */
export class Reading {
  readonly #context: Pick<RequestContext, 'quota'>
  readonly #sends: boolean
  #bytes = 0
  #large = false

  /** `sends` says whether what is read is on its way to a destination. */
  constructor(context: Pick<RequestContext, 'quota'>, sends = false) {
    this.#context = context
    this.#sends = sends
  }

  /**
   * Returns what `find` finds, which is told how many bytes it may read.
   *
   * Throws `answer_too_large` when the request reads more than SHOWN_DATA_BYTES_MAX in all, and `tenant_busy`.
   */
  async read(find: Find): Promise<readonly StoredToken[]> {
    if (!this.#large) {
      try {
        return this.#count(await find(LARGE_BYTES_MIN - this.#bytes))
      } catch (error) {
        if (!(error instanceof TooMuchData)) throw error
      }
      await this.#context.quota?.().acquireLargeRead(this.#sends)
      this.#large = true
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

/**
 * Returns what `render` makes of `tokens` by expressions: at once while that is little, and else with a slot for large reads.
 * Much can be made of little, by filters and by naming it often; what was made until then is thrown away, and made again.
 *
 * Rejects with `tenant_busy`.
 */
export async function renderWithinBudget<Rendered>(
  { random }: Pick<World, 'random'>,
  context: Pick<RequestContext, 'quota'>,
  { tokens, sends }: { readonly tokens: readonly StoredToken[]; readonly sends: boolean },
  render: (evaluationContext: EvaluationContext) => Promise<Rendered>,
): Promise<Rendered> {
  if (bytesOf(tokens) <= LARGE_BYTES_MIN) {
    const costBudget = new CostBudget(LARGE_BYTES_MIN, LARGE_BYTES_MIN)
    let rendered: Rendered | undefined
    try {
      rendered = await render({ random, costBudget })
    } catch (error) {
      if (!costBudget.isExhausted) throw error
    }
    // A mask shows nothing where there is not enough, and says so to nobody.
    if (rendered !== undefined && !costBudget.isExhausted) return rendered
    rendered = undefined
    await context.quota?.().acquireLargeRead(sends)
  }
  return await render(readingEvaluationContext(random, tokens.length))
}

/** Bytes of the data of `tokens`. */
export function bytesOf(tokens: readonly StoredToken[]): number {
  let bytes = 0
  for (const { data } of tokens) bytes += data.length
  return bytes
}
