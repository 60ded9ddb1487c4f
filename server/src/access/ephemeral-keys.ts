import { hash } from 'node:crypto'
import type { ApplicationType } from '../base/access.ts'
import { Sensitive } from '../base/sensitive.ts'
import type { Random } from '../ports/random.ts'
import { makeApiKey } from './api-key.ts'

/** The application an ephemeral key acts for, and its reactor. */
export interface EphemeralKeySubject {
  readonly tenantId: string
  readonly applicationId: string
  /** Takes the place of the key in the audit log: the id of a reactor. */
  readonly reactorId: string
}

export interface EphemeralKey {
  readonly key: Sensitive<string>
  /** Invalidates the key. */
  readonly end: () => void
}

/**
 * Ephemeral keys of tenant code, one per run: a key allows what the application may do at the time of each call.
 *
 * They are kept in memory, as hashes, and nowhere else: none outlives the process, or its run. Decision 0029.
 */
export class EphemeralKeys {
  readonly #subjects = new Map<string, EphemeralKeySubject>()

  /** Issues a key for an application of this type. The caller must end it. */
  issue(random: Random, type: ApplicationType, subject: EphemeralKeySubject): EphemeralKey {
    const key = makeApiKey(type, random)
    const name = hash('sha256', key, 'base64')
    this.#subjects.set(name, subject)
    return { key: new Sensitive(key), end: () => void this.#subjects.delete(name) }
  }

  /** Returns the subject of the key with this SHA-256 hash, in base64. */
  find(name: string): EphemeralKeySubject | undefined {
    return this.#subjects.get(name)
  }
}
