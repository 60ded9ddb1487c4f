import { idOf } from '../../base/id.ts'
import type { Random } from '../../ports/random.ts'
import type { StoredApplication, StoredApplicationKey } from '../../ports/stored.ts'
import { hashApiKey, makeApiKey, prefixOf } from '../api-key.ts'

/** A new key and its stored form. `key` goes to the caller that requested it, and nowhere else. */
export interface IssuedKey {
  readonly key: string
  readonly stored: StoredApplicationKey
}

/** Returns a key for `application`, to be committed. `version` counts the application's keys. */
export function issueKey(
  random: Random,
  application: Pick<StoredApplication, 'id' | 'type'>,
  made: { readonly version: number; readonly by: string; readonly at: number },
): IssuedKey {
  const key = makeApiKey(application.type, random)
  return {
    key,
    stored: {
      id: idOf(made.at, random.bytes(10)),
      applicationId: application.id,
      hash: hashApiKey(key),
      prefix: prefixOf(key),
      version: made.version,
      createdBy: made.by,
      createdAt: made.at,
    },
  }
}
