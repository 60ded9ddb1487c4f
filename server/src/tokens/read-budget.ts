import type { RequestContext } from '../request/context.ts'
import { INLINE_DATA_BYTES_MAX, LARGE_BYTES_MIN, SHOWN_DATA_BYTES_MAX } from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'
import { CostBudget, type EvaluationContext } from '../expressions/template.ts'
import type { FoundToken, StoredToken } from '../ports/stored.ts'
import { TooMuchData } from '../ports/too-much-data.ts'
import type { World } from '../ports/world.ts'
import { readingEvaluationContext } from './shown-tokens.ts'

/** A token, and whether its data is to be read. */
export interface WantedToken {
  readonly token: FoundToken
  readonly wanted: boolean
}

/**
 * Bounds the token data one request reads. A small read is done at once; a large one is discarded and repeated with one of
 * the tenant's slots for large reads.
 */
export class ReadBudget {
  readonly #context: Pick<RequestContext, 'quota'>
  readonly #sends: boolean
  #bytes = 0
  #large: boolean

  /** `sends` is true if the data read is forwarded to a destination; `slots` is false for pages, which wait for no slot. */
  constructor(context: Pick<RequestContext, 'quota'>, { sends = false, slots = true } = {}) {
    this.#context = context
    this.#sends = sends
    this.#large = !slots
  }

  /**
   * Returns the tokens in the same order, the wanted ones with all of their data; null if one has changed since it was found.
   *
   * Throws `answer_too_large` if the request reads more than SHOWN_DATA_BYTES_MAX in total, and `tenant_busy`.
   */
  async read(
    world: Pick<World, 'store'>,
    context: RequestContext,
    tokens: readonly WantedToken[],
  ): Promise<readonly FoundToken[] | null> {
    const found = tokens.map(({ token }) => token)
    const missing = tokens.flatMap(({ token, wanted }) =>
      wanted && token.data === null ? [token] : [],
    )
    const short = bytesOf(found)
    if (missing.length === 0) {
      await this.#count(short)
      return found
    }
    const long = await this.#readLong(world, context, missing, short)
    const byId = new Map(long.map((it) => [it.id, it]))
    for (const it of missing) if (!isSame(it, byId.get(it.id))) return null
    await this.#count(short + bytesOf(long))
    return found.map((it) => byId.get(it.id) ?? it)
  }

  /** Reads data that a look-up leaves out; the request reads `short` bytes besides. */
  async #readLong(
    { store }: Pick<World, 'store'>,
    { tenantId, transactionId }: RequestContext,
    tokens: readonly FoundToken[],
    short: number,
  ): Promise<readonly StoredToken[]> {
    const ids = tokens.map((it) => it.id)
    const find = (bytesMax: number): Promise<StoredToken[]> =>
      store.tokens.find(tenantId, ids, transactionId, bytesMax)
    const left = (bytesMax: number): number => bytesMax - this.#bytes - short
    if (!this.#large && left(LARGE_BYTES_MIN) > ids.length * INLINE_DATA_BYTES_MAX) {
      try {
        return await find(left(LARGE_BYTES_MIN))
      } catch (error) {
        if (!(error instanceof TooMuchData)) throw error
      }
    }
    await this.#enlarge()
    if (left(SHOWN_DATA_BYTES_MAX) <= 0) throw new ServiceError('answer_too_large')
    return await answerable(find(left(SHOWN_DATA_BYTES_MAX)))
  }

  async #count(bytes: number): Promise<void> {
    if (this.#bytes + bytes > LARGE_BYTES_MIN) await this.#enlarge()
    if (this.#bytes + bytes > SHOWN_DATA_BYTES_MAX) throw new ServiceError('answer_too_large')
    this.#bytes += bytes
  }

  async #enlarge(): Promise<void> {
    if (this.#large) return
    await this.#context.quota?.().acquireLargeRead(this.#sends)
    this.#large = true
  }
}

/** Whether `now` is the token as it was found, and so as it was authorized: containers, too, may have changed since. */
function isSame(found: FoundToken, now: StoredToken | undefined): boolean {
  return (
    now !== undefined &&
    now.internalId === found.internalId &&
    now.revision === found.revision &&
    now.containers.join(' ') === found.containers.join(' ')
  )
}

/** Rejects with `answer_too_large` if `found` is too much data to read at once. */
async function answerable<Found>(found: Promise<Found>): Promise<Found> {
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
  { tokens, sends }: { readonly tokens: readonly FoundToken[]; readonly sends: boolean },
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
export function bytesOf(tokens: readonly FoundToken[]): number {
  let bytes = 0
  for (const { data } of tokens) bytes += data?.length ?? 0
  return bytes
}
