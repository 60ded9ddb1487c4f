import type { RequestContext } from '../base/access.ts'
import { LARGE_BYTES_MIN, SHOWN_DATA_BYTES_MAX } from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'
import { CostBudget, type EvaluationContext } from '../expressions/template.ts'
import type { StoredToken } from '../ports/stored.ts'
import { TooMuchData } from '../ports/too-much-data.ts'
import type { World } from '../ports/world.ts'
import { readingEvaluationContext } from './shown-tokens.ts'

/**
 * Bounds the token data one request reads. A small read is done at once; a large one is discarded and repeated with one of
 * the tenant's slots for large reads.
 */
export class ReadBudget {
  readonly #context: Pick<RequestContext, 'quota'>
  readonly #sends: boolean
  #bytes = 0
  #large = false

  /** `sends` is true if the data read is forwarded to a destination. */
  constructor(context: Pick<RequestContext, 'quota'>, sends = false) {
    this.#context = context
    this.#sends = sends
  }

  /**
   * Returns the result of `find`, which gets the number of bytes it may read.
   *
   * Throws `answer_too_large` if the request reads more than SHOWN_DATA_BYTES_MAX in total, and `tenant_busy`.
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

/** Rejects with `answer_too_large` if `found` is too much data to read at once. */
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
 * Runs `render` on `tokens` within a small budget. If that is exhausted, discards the result, waits for a slot for large
 * reads and runs again: filters and repeated references can make a large result from little data.
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
    // A mask that runs out of budget shows nothing and reports no error, so the budget itself is checked.
    if (rendered !== undefined && !costBudget.isExhausted) return rendered
    rendered = undefined
    await context.quota?.().acquireLargeRead(sends)
  }
  return await render(readingEvaluationContext(random, tokens.length))
}

/** Returns the size of the tokens' data in bytes. */
export function bytesOf(tokens: readonly StoredToken[]): number {
  let bytes = 0
  for (const { data } of tokens) bytes += data.length
  return bytes
}
