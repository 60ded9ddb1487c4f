import type { ReadableStore } from '../../test/model/entity-stores.ts'
import { accessContract } from './store-access.contract.ts'
import { answerContract } from './store-answers.contract.ts'
import { applicationContract } from './store-applications.contract.ts'
import { commitContract } from './store-commits.contract.ts'
import { dataContract } from './store-data.contract.ts'
import { definitionContract } from './store-definitions.contract.ts'
import { entityContract } from './store-entities.contract.ts'
import { envelopeContract } from './store-envelopes.contract.ts'
import { jobContract } from './store-jobs.contract.ts'
import type { Open } from './store-kit.contract.ts'
import { listContract } from './store-lists.contract.ts'
import { longListContract } from './store-long-lists.contract.ts'
import { proxyContract } from './store-proxies.contract.ts'
import { auditLogContract } from './store-audit-log.contract.ts'
import { sweepContract } from './store-sweep.contract.ts'
import { sessionContract } from './store-sessions.contract.ts'
import { tenantContract } from './store-tenants.contract.ts'
import { tokenChangeContract } from './store-token-changes.contract.ts'
import { tokenContract } from './store-tokens.contract.ts'
import { totalsContract } from './store-totals.contract.ts'
import { transactionKeyContract } from './store-transaction-keys.contract.ts'
import { transactionContract } from './store-transactions.contract.ts'
import { usageContract } from './store-usage.contract.ts'

/**
 * The contract of every Store. `open` returns an empty store; the suite closes it.
 *
 * `reuse` may return a store that an earlier test of the same part used, emptied: for the parts that use nothing that
 * a store remembers beside its rows. `entities` opens one whose tables can be read, for so many random sequences of commits.
 */
export function storeContract(
  name: string,
  open: Open,
  entities: { readonly open: () => Promise<ReadableStore>; readonly sequences: number },
  reuse: () => Open = () => open,
): void {
  commitContract(name, open, reuse())
  tenantContract(name, reuse())
  applicationContract(name, reuse())
  tokenContract(name, reuse())
  dataContract(name, reuse())
  longListContract(name, open)
  listContract(name, reuse())
  answerContract(name, reuse())
  tokenChangeContract(name, reuse())
  transactionContract(name, reuse())
  transactionKeyContract(name, reuse())
  sweepContract(name, reuse())
  auditLogContract(name, open)
  sessionContract(name, reuse())
  accessContract(name, open)
  definitionContract(name, reuse())
  proxyContract(name, reuse())
  jobContract(name, reuse())
  usageContract(name, reuse())
  totalsContract(name, reuse())
  envelopeContract(name, open)
  entityContract(name, entities.open, entities.sequences)
}
