import { lookup } from 'node:dns'
import {
  EGRESS_ADDRESSES_MAX,
  EGRESS_LOOKUP_MS_MAX,
  EGRESS_NAME_MS,
  EGRESS_NAMELESS_MS,
  EGRESS_NAMES_MAX,
} from '../../base/limits.ts'
import { EgressFailure } from '../../ports/egress.ts'
import { knownAddress, type KnownAddress } from './destination-rule.ts'
import { LookupQueue } from './lookup-queue.ts'

/** Returns every address of a name, in the order to try them; rejects when it has none. */
export type Resolve = (name: string) => Promise<readonly string[]>

/** The addresses a name had, all of them, when it was asked for. */
export interface NameAnswer {
  readonly addresses: readonly KnownAddress[]
  /** The same as texts. */
  readonly texts: readonly string[]
  /** The same for the same addresses, in whatever order they came. */
  readonly key: string
}

/**
 * What names resolve to, remembered for a few seconds: a busy proxy asks once, and whoever asks meanwhile waits
 * for the same answer. Each owner asks for itself: what one waits for in vain is no answer for another.
 *
 * The system's resolver is asked, as every program on the machine does, hosts file included. It holds a thread
 * for as long as it takes, and cannot be stopped: so few lookups run at a time, and nobody waits for one longer
 * than the limit.
 */
export class Names {
  readonly #resolve: Resolve
  readonly #now: () => number
  readonly #remembered = new Map<string, Remembered>()
  readonly #queue = new LookupQueue()

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
    // Until it is there, it does not age.
    const entry: Remembered = { answer, until: Infinity }
    this.#remembered.delete(asked)
    this.#remembered.set(asked, entry)
    if (this.#remembered.size > EGRESS_NAMES_MAX) {
      this.#remembered.delete(this.#remembered.keys().next().value!)
    }
    answer.then(
      () => (entry.until = this.#now() + EGRESS_NAME_MS),
      () => (entry.until = this.#now() + EGRESS_NAMELESS_MS),
    )
  }

  async #lookUp(owner: string, name: string): Promise<NameAnswer> {
    const { promise: found, resolve, reject } = Promise.withResolvers<readonly string[]>()
    const stopWaiting = this.#queue.acquire(owner, () => {
      // A lookup that was given up counts until it comes back: it is the thread that is scarce.
      const release = (): void => this.#queue.release(owner)
      this.#resolve(name).then(resolve, reject).finally(release)
    })
    if (stopWaiting === null) reject(new Error('Too many names are being looked up'))
    const timer = setTimeout(() => {
      stopWaiting?.()
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
  // Each is judged, kept and compared: thousands, of thousands of names, would fill memory.
  if (texts.length > EGRESS_ADDRESSES_MAX) throw new Error('The name has too many addresses')
  const addresses = texts.map((text) => {
    const known = knownAddress(text)
    // One that cannot be judged would be passed over, and an answer is taken as a whole or not at all.
    if (known === null) throw new Error('The resolver returned what is no address')
    return known
  })
  if (addresses.length === 0) throw new Error('The name has no address')
  return { addresses, texts, key: texts.toSorted().join(' ') }
}
