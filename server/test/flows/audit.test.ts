import { test } from 'node:test'
import { SEED } from '../kit/seed.ts'
import { runAudit } from './audit.ts'

test('whatever an attacker does to the audit log in the file, the verifier names it', async (t) => {
  t.diagnostic(JSON.stringify(await runAudit({ edits: 200, seed: SEED })))
})
