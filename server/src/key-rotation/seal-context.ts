import type { SealContext } from '../ports/keyring.ts'
import {
  ENTITIES,
  SEALED_NAMES,
  sealContextOf as sealContextOfEntity,
} from '../ports/store/entities.ts'
import type { StoredEnvelope } from '../ports/stored.ts'

/**
 * Returns the context that an envelope was sealed for: for a token, that of tokens/sealing.ts; for an entity, that of its
 * description. The envelope opens with no other.
 */
export function sealContextOf({ table, part, id, type, containers }: StoredEnvelope): SealContext {
  const name = SEALED_NAMES.find((it) => ENTITIES[it].table === table)
  return name === undefined ? { id, part, type, containers } : sealContextOfEntity(name, part, id)
}
