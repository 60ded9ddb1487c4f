import { LRUCache } from 'lru-cache'
import { lookup } from 'node:dns'
import { FairSemaphore } from '../../base/fair-semaphore.ts'
import {
  EGRESS_ADDRESSES_MAX,
  EGRESS_LOOKUPS_MAX,
  EGRESS_LOOKUPS_OF_ONE_MAX,
  EGRESS_LOOKUPS_WAITING_MAX,
  EGRESS_LOOKUP_MS_MAX,
  EGRESS_NAME_MS,
  EGRESS_NAMELESS_MS,
  EGRESS_NAMES_MAX,
} from '../../base/limits.ts'
import { EgressFailure } from '../../ports/egress.ts'
import { knownAddress, type KnownAddress } from './destination-rule.ts'

/** Returns all addresses of a name, in the order to try them; rejects when it has none. */
export type Resolve = (name: string) => Promise<readonly string[]>

/** All addresses that a name had at the time of the lookup. */
export interface NameAnswer {
  readonly addresses: readonly KnownAddress[]
  /** The addresses as text. */
  readonly texts: readonly string[]
  /** Cache key: equal for equal sets of addresses, whatever their order. */
  readonly key: string
}

/**
 * Resolves names, and caches the answers for a few seconds: a busy proxy looks its destination up once, and concurrent
 * callers share the lookup. Answers are per owner: one owner's timeout is no answer for another.
 *
 * Uses the system's resolver, like every program on the machine, including the hosts file. A lookup occupies a thread
 * until it returns and cannot be cancelled, so few run at a time, and callers stop waiting at the limit.
 */
export class Names {
  readonly #resolve: Resolve
  readonly #now: () => number
  readonly #remembered = new LRUCache<string, Remembered>({ max: EGRESS_NAMES_MAX })
  /** Never all for one owner, whose slow names would block the names of others. */
  readonly #lookups = new FairSemaphore({
    max: EGRESS_LOOKUPS_MAX,
    ownerMax: EGRESS_LOOKUPS_OF_ONE_MAX,
    queueMax: EGRESS_LOOKUPS_WAITING_MAX,
    refuse: () => new Error('Too many names are being looked up'),
  })

  constructor(resolve: Resolve, now: () => number) {
    this.#resolve = resolve
    this.#now = now
  }

  /** Rejects with EgressFailure (`unresolved`). */
  answer(owner: string, name: string): Promise<NameAnswer> {
    const asked = `${owner} ${name}`
    const known = this.#remembered.get(asked)
    if (known !== undefined && this.#now() < known.until) return known.answer
    const answer = this.#lookUp(owner, name)
    this.#remember(asked, answer)
    return answer
  }

  #remember(asked: string, answer: Promise<NameAnswer>): void {
    // An answer does not age until it has arrived.
    const entry: Remembered = { answer, until: Infinity }
    this.#remembered.set(asked, entry)
    answer.then(
      () => (entry.until = this.#now() + EGRESS_NAME_MS),
      () => (entry.until = this.#now() + EGRESS_NAMELESS_MS),
    )
  }

  async #lookUp(owner: string, name: string): Promise<NameAnswer> {
    const { promise: found, resolve, reject } = Promise.withResolvers<readonly string[]>()
    const begin = (): void => {
      // An abandoned lookup keeps its slot until it returns, because it still occupies a thread.
      const release = (): void => this.#lookups.release(owner)
      this.#resolve(name).then(resolve, reject).finally(release)
    }
    const slot = this.#lookups.acquire(owner)
    if (slot === undefined) begin()
    else slot.acquired.then(begin, reject)
    const timer = setTimeout(() => {
      const error = new Error('The resolver did not answer')
      slot?.leave(error)
      reject(error)
    }, EGRESS_LOOKUP_MS_MAX)
    try {
      return answerOf(await found)
    } catch (cause) {
      throw new EgressFailure('unresolved', { cause })
    } finally {
      clearTimeout(timer)
    }
  }
}

interface Remembered {
  readonly answer: Promise<NameAnswer>
  until: number
}

/** Looks the name up with the resolver of this machine. */
export function systemResolve(name: string): Promise<string[]> {
  const { promise, resolve, reject } = Promise.withResolvers<string[]>()
  lookup(name, { all: true, order: 'verbatim' }, (error, found) => {
    if (error === null) resolve(found.map((it) => it.address))
    else reject(error)
  })
  return promise
}

function answerOf(texts: readonly string[]): NameAnswer {
  // Each address is judged, cached and compared; thousands of addresses for thousands of names would fill memory.
  if (texts.length > EGRESS_ADDRESSES_MAX) throw new Error('The name has too many addresses')
  const addresses = texts.map((text) => {
    const known = knownAddress(text)
    // Skipping an address that cannot be judged would accept part of an answer; it is all or nothing.
    if (known === null) throw new Error('The resolver returned what is no address')
    return known
  })
  if (addresses.length === 0) throw new Error('The name has no address')
  return { addresses, texts, key: texts.toSorted().join(' ') }
}
