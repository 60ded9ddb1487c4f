/**
 * `npm run test:rights --workspace server -- --checkout ../../before`: attacks the service of a checkout, by default this one, and
 * prints which attacks succeed. Ends with 1 if any does. `--quick` leaves out those that take half a minute.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { RIGHTS_ATTACKS } from './attacks.ts'
import { startAttacked } from './stage.ts'

const { values } = parseArgs({
  options: { checkout: { type: 'string' }, quick: { type: 'boolean', default: false } },
})
const folder = mkdtempSync(join(tmpdir(), 'symbolon-rights-'))
const { on, stop } = await startAttacked(folder, values.checkout)
const attacks = RIGHTS_ATTACKS.filter((it) => !values.quick || it.slow !== true)
let succeeded = 0
try {
  for (const { name, succeeds } of attacks) {
    const success = await succeeds(on)
    if (success) succeeded++
    process.stdout.write(`${success ? 'SUCCEEDED' : 'failed   '}  ${name}\n`)
  }
} finally {
  await stop()
  rmSync(folder, { recursive: true })
}
process.stdout.write(`${attacks.length} attacks, ${succeeded} succeeded\n`)
if (succeeded > 0) process.exitCode = 1
