import { hash } from 'node:crypto'
import type { ApplicationType } from '../base/access.ts'
import { Sensitive } from '../base/sensitive.ts'
import type { Random } from '../world/random.ts'
import { makeApiKey } from './api-key.ts'

/** For which application a key is lent, and to what. */
export interface Loan {
  readonly tenantId: string
  readonly applicationId: string
  /** Stands in the audit log where the key would be: the id of a reactor. */
  readonly borrowerId: string
}

export interface LentKey {
  readonly key: Sensitive<string>
  /** From now on it is nobody's. */
  readonly end: () => void
}

/**
 * Keys that are lent to code, each for one run of it: it may do what the application may do at the time of each call.
 *
 * They are kept in memory, as hashes, and nowhere else: none outlives the process, or its run. Decision 0029.
 */
export class LentKeys {
  readonly #loans = new Map<string, Loan>()

  /** Makes a key for an application of this type. Whoever borrows it ends it. */
  lend(random: Random, type: ApplicationType, loan: Loan): LentKey {
    const key = makeApiKey(type, random)
    const name = hash('sha256', key, 'base64')
    this.#loans.set(name, loan)
    return { key: new Sensitive(key), end: () => void this.#loans.delete(name) }
  }

  /** Returns what the key of this SHA-256 hash, in base64, is lent for. */
  find(name: string): Loan | undefined {
    return this.#loans.get(name)
  }
}
