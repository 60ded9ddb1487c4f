import { test } from 'node:test'
import { runColumnEdits } from './audit-columns.ts'

for (const store of ['sqlite', 'postgres'] as const) {
  test(`an edit of any column or row of the audit tables is named before and after a restart, or harmless: ${store}`, async (t) => {
    const counts = await runColumnEdits({ store, random: null })
    t.diagnostic(JSON.stringify(counts))
  })
}
