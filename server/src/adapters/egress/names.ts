import { lookup } from 'node:dns'
import {
  EGRESS_LOOKUP_MS_MAX,
  EGRESS_LOOKUPS_MAX,
  EGRESS_LOOKUPS_WAITING_MAX,
  EGRESS_NAME_MS,
  EGRESS_NAMELESS_MS,
  EGRESS_NAMES_MAX,
} from '../../base/limits.ts'
import { EgressFailure } from '../../world/egress.ts'
import { knownAddress, type KnownAddress } from './destination-rule.ts'

/** Returns every address of a name, in the order to try them; rejects when it has none. */
export type Resolve = (name: string) => Promise<readonly string[]>

/** The addresses a name had, all of them, when it was asked for. */
export interface NameAnswer {
  readonly addresses: readonly KnownAddress[]
  /** The same for the same addresses, in whatever order they came. */
  readonly key: string
}

/**
 * What names resolve to, remembered for a few seconds: a busy proxy asks once, and whoever asks meanwhile waits
 * for the same answer.
 *
 * The system's resolver is asked, as every program on the machine does, hosts file included. It holds a thread
 * for as long as it takes, and cannot be stopped: so few lookups run at a time, and nobody waits for one longer
 * than the limit.
 */
export class Names {
  readonly #resolve: Resolve
  readonly #now: () => number
  readonly #remembered = new Map<string, Remembered>()
  readonly #waiting: (() => void)[] = []
  #running = 0

  constructor(resolve: Resolve, now: () => number) {
    this.#resolve = resolve
    this.#now = now
  }

  /** Rejects with EgressFailure (`unresolved`). */
  async answer(name: string): Promise<NameAnswer> {
    const known = this.#remembered.get(name)
    if (known !== undefined && this.#now() < known.until) return await known.answer
    return await this.#ask(name)
  }

  #ask(name: string): Promise<NameAnswer> {
    const answer = this.#lookUp(name)
    // Until it is there, it does not age.
    const entry: Remembered = { answer, until: Infinity }
    this.#remembered.delete(name)
    this.#remembered.set(name, entry)
    if (this.#remembered.size > EGRESS_NAMES_MAX) {
      this.#remembered.delete(this.#remembered.keys().next().value!)
    }
    answer.then(
      () => (entry.until = this.#now() + EGRESS_NAME_MS),
      () => (entry.until = this.#now() + EGRESS_NAMELESS_MS),
    )
    return answer
  }

  async #lookUp(name: string): Promise<NameAnswer> {
    const { promise: found, resolve, reject } = Promise.withResolvers<readonly string[]>()
    const lookup = (): void => {
      // A lookup that was given up counts until it comes back: it is the thread that is scarce.
      this.#resolve(name).then(resolve, reject).finally(this.#next)
    }
    this.#whenFree(lookup, reject)
    const timer = setTimeout(() => {
      const index = this.#waiting.indexOf(lookup)
      if (index !== -1) this.#waiting.splice(index, 1)
      reject(new Error('Nobody answered'))
    }, EGRESS_LOOKUP_MS_MAX)
    try {
      return answerOf(await found)
    } catch (cause) {
      throw new EgressFailure('unresolved', { cause })
    } finally {
      clearTimeout(timer)
    }
  }

  #whenFree(lookup: () => void, reject: (error: Error) => void): void {
    if (this.#running < EGRESS_LOOKUPS_MAX) {
      this.#running += 1
      lookup()
    } else if (this.#waiting.length < EGRESS_LOOKUPS_WAITING_MAX) this.#waiting.push(lookup)
    else reject(new Error('Too many names are being looked up'))
  }

  readonly #next = (): void => {
    const next = this.#waiting.shift()
    if (next === undefined) this.#running -= 1
    else next()
  }
}

interface Remembered {
  readonly answer: Promise<NameAnswer>
  until: number
}

/** The resolver of this machine. */
export function systemResolve(name: string): Promise<string[]> {
  const { promise, resolve, reject } = Promise.withResolvers<string[]>()
  lookup(name, { all: true, order: 'verbatim' }, (error, found) => {
    if (error === null) resolve(found.map((it) => it.address))
    else reject(error)
  })
  return promise
}

function answerOf(texts: readonly string[]): NameAnswer {
  const addresses = texts.map((text) => {
    const known = knownAddress(text)
    // One that cannot be judged would be passed over, and an answer is taken as a whole or not at all.
    if (known === null) throw new Error('The resolver returned what is no address')
    return known
  })
  if (addresses.length === 0) throw new Error('The name has no address')
  return { addresses, key: texts.toSorted().join(' ') }
}
