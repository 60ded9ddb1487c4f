import {
  recoverManagementKey,
  type RecoveredKey,
  type RecoveryRequest,
} from '../access/recover-management-key.ts'
import type { RootKeys } from '../adapters/local-keyring/root-keys.ts'
import type { KeyProvider } from '../ports/key-provider.ts'
import type { World } from '../ports/world.ts'
import type { OpenWorld } from './open-world.ts'

/** The order that `symbolon keys recover` sends to the service. */
export interface RecoveryOrder {
  readonly recover: RecoveryRequest
  /** Random bytes wrapped by each root key that the command holds, in hexadecimal: only a holder of the key can make them. */
  readonly proofs: readonly string[]
}

/** Returns an order that proves possession of `keys`, for this request only. */
export async function renderRecoveryOrder(
  recover: RecoveryRequest,
  keys: RootKeys,
  random: World['random'],
): Promise<RecoveryOrder> {
  const proofs = await Promise.all(
    keys.all().map(async (it) => {
      const wrapped = await it.wrap(random.bytes(PROOF_BYTES), contextOf(recover))
      return Buffer.from(wrapped).toString('hex')
    }),
  )
  return { recover, proofs }
}

/** Parses an order from a line of JSON; returns null if it is invalid. */
export function parseRecoveryOrder(order: unknown): RecoveryOrder | null {
  if (typeof order !== 'object' || order === null) return null
  const { recover, proofs } = order as Partial<Record<keyof RecoveryOrder, unknown>>
  if (typeof recover !== 'object' || recover === null || !Array.isArray(proofs)) return null
  const { tenant, applicationId } = recover as Partial<Record<keyof RecoveryRequest, unknown>>
  if (!isTextOrNull(tenant) || !isTextOrNull(applicationId)) return null
  if (!proofs.every((it) => typeof it === 'string')) return null
  return { recover: { tenant, applicationId }, proofs }
}

function isTextOrNull(value: unknown): value is string | null {
  return typeof value === 'string' || value === null
}

/** Executes an order in the service. Rejects unless the sender holds the root key in use, as recoverManagementKey() does. */
export async function executeRecoveryOrder(
  { world, keyProvider }: Pick<OpenWorld, 'world' | 'keyProvider'>,
  { recover, proofs }: RecoveryOrder,
): Promise<RecoveredKey> {
  const installed = await world.store.tenants.rootKeyCheck()
  // Another server may have replaced it.
  if (installed !== null) keyProvider.follow(installed.id)
  const inUse = keyProvider.find(keyProvider.id)!
  const proven = await Promise.all(proofs.map((it) => opens(inUse, it, recover)))
  if (!proven.includes(true)) {
    throw new Error(
      `Cannot recover a key: the command was run without root key ${inUse.id}, which is in use; ` +
        'set SYMBOLON_ROOT_KEY_FILE to its file, as for the service',
    )
  }
  return await recoverManagementKey(world, keyProvider, recover)
}

async function opens(key: KeyProvider, proof: string, request: RecoveryRequest): Promise<boolean> {
  try {
    await key.unwrap(Buffer.from(proof, 'hex'), contextOf(request))
    return true
  } catch {
    return false
  }
}

function contextOf({ tenant, applicationId }: RecoveryRequest): string[] {
  return ['management key recovery', JSON.stringify([tenant, applicationId])]
}

/** The length of a key: providers need not wrap any other length. */
const PROOF_BYTES = 32
