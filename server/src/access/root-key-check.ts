import type { KeyProvider } from '../ports/key-provider.ts'
import type { Store } from '../ports/store.ts'
import type { RootKeyCheck } from '../ports/stored.ts'
import { SetUpError } from './set-up-error.ts'

/**
 * Refuses a root key other than the one the store was set up with; runs before anything is served.
 *
 * With another key nothing could be read, and what it wrote could never be read with the right one. An empty store accepts any.
 * Rejects with SetUpError; changes nothing.
 */
export async function checkRootKey(
  store: { readonly tenants: Pick<Store['tenants'], 'rootKeyCheck'> },
  keyProvider: KeyProvider,
): Promise<void> {
  const installed = await store.tenants.rootKeyCheck()
  if (installed === null) return
  if (installed.id !== keyProvider.id) {
    throw new SetUpError(
      'root-key-other',
      `The data was set up with root key ${installed.id}, but root key ${keyProvider.id} was given: ` +
        `nothing was changed; start again with root key ${installed.id}.`,
    )
  }
  if (!(await opensCheck(keyProvider, installed))) {
    throw new SetUpError(
      'root-key-damaged',
      `Root key ${keyProvider.id} has the right id, but does not decrypt the value that proves it: the key file or ` +
        'that value is damaged, and nothing was changed. Compare the key file with your copy of it. If they are equal, ' +
        'start the service: if the key decrypts the keys of the tenants, it makes a new value.',
    )
  }
}

/**
 * Returns the value by which checkRootKey() recognizes this root key. It also states that the audit log of every tenant has a
 * checkpoint, which seals an access state: only the holder of the root key can state that, and without such a value the store is not
 * served. Decisions 0081, 0082.
 */
export async function makeRootKeyCheck(keyProvider: KeyProvider): Promise<RootKeyCheck> {
  return { id: keyProvider.id, check: await keyProvider.wrap(KNOWN_VALUE, CONTEXT) }
}

/** Whether the root key decrypts the value that proves it. */
export async function opensCheck(
  keyProvider: KeyProvider,
  { check }: RootKeyCheck,
): Promise<boolean> {
  return (
    (await opens(keyProvider, check, CONTEXT)) ||
    (await opens(keyProvider, check, CONTEXT_BEFORE_ACCESS_STATES)) ||
    (await opens(keyProvider, check, CONTEXT_BEFORE_CHECKPOINTS))
  )
}

/**
 * Whether the store was set up by a version that left the first checkpoint of an audit log to the service, and was not upgraded
 * since. False for a check that is damaged.
 */
export async function precedesCheckpoints(
  keyProvider: KeyProvider,
  { id, check }: RootKeyCheck,
): Promise<boolean> {
  return id === keyProvider.id && (await opens(keyProvider, check, CONTEXT_BEFORE_CHECKPOINTS))
}

/**
 * Whether the store was set up by a version without access states, with or without checkpoints, and was not upgraded since. False
 * for a check that is damaged.
 */
export async function precedesAccessStates(
  keyProvider: KeyProvider,
  installed: RootKeyCheck,
): Promise<boolean> {
  const { id, check } = installed
  return (
    (await precedesCheckpoints(keyProvider, installed)) ||
    (id === keyProvider.id && (await opens(keyProvider, check, CONTEXT_BEFORE_ACCESS_STATES)))
  )
}

async function opens(
  keyProvider: KeyProvider,
  check: Uint8Array,
  context: readonly string[],
): Promise<boolean> {
  try {
    return Buffer.compare(await keyProvider.unwrap(check, context), KNOWN_VALUE) === 0
  } catch {
    // The operator's remedy is the same for every reason.
    return false
  }
}

/** As long as a key, since providers need not wrap anything else. */
const KNOWN_VALUE = Buffer.from('symbolon: this root key is right')
const CONTEXT = [
  'root key check',
  'every audit log has a checkpoint',
  'which seals the access state',
]
const CONTEXT_BEFORE_ACCESS_STATES = ['root key check', 'every audit log has a checkpoint']
const CONTEXT_BEFORE_CHECKPOINTS = ['root key check']
