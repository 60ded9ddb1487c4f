import { emptyDatabase, freshDatabase } from '../../../test/kit/postgres/test-database.ts'
import { storeContract } from '../../ports/store.contract.ts'
import { openPatiently } from '../../../test/kit/postgres/patient-store.ts'

let database: Promise<string> | null = null

storeContract('postgres', async () => {
  const first = database === null
  const url = await (database ??= freshDatabase())
  if (!first) await emptyDatabase(url)
  return await openPatiently(url)
})
