import { emptyDatabase, freshDatabase } from '../../../../test/kit/postgres/test-database.ts'
import { openReadable } from '../../../../test/model/entity-stores.ts'
import { reusing, type Open } from '../../../ports/store-kit.contract.ts'
import { storeContract } from '../../../ports/store.contract.ts'
import { openPatiently } from '../../../../test/kit/postgres/patient-store.ts'

let database: Promise<string> | null = null

const entities = { open: () => openReadable('postgres'), sequences: 16 }

storeContract('postgres', open, entities, reuse)

async function open() {
  const first = database === null
  const url = await (database ??= freshDatabase())
  if (!first) await emptyDatabase(url)
  return await openPatiently(url)
}

/** A new connection costs more than most tests. */
function reuse(): Open {
  return reusing(open, async () => emptyDatabase(await database!))
}
