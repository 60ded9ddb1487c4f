import type { SealContext } from '../ports/keyring.ts'
import { sealContextOf as sealContextOfEntity } from '../ports/store/entities.ts'
import type { StoredEnvelope } from '../ports/stored.ts'

/**
 * Returns the context that an envelope was sealed for, as its module defines it: ports/store/entities.ts, tokens/sealing.ts,
 * access/commit.ts, reactors/jobs/job-state.ts, reactors/callbacks/secrets.ts. The envelope opens with no other.
 */
export function sealContextOf({ table, part, id, type, containers }: StoredEnvelope): SealContext {
  switch (table) {
    case 'tokens':
    case 'pending':
      return { id, part, type, containers }
    case 'answers':
      return { id, part: 'answer', type: 'answer', containers: [] }
    case 'proxies':
      return sealContextOfEntity('proxy', 'terms', id)
    case 'reactors':
      return sealContextOfEntity('reactor', 'terms', id)
    case 'jobs':
      return { id, part, type: 'job', containers: [] }
    case 'callback_secrets':
      return { id, part: 'secrets', type: 'callback', containers: [] }
    default:
      throw new TypeError('Cannot name the context of an envelope: its table is unknown', {
        cause: table satisfies never,
      })
  }
}
