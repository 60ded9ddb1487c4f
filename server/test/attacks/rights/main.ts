/**
 * `npm run test:rights --workspace server -- --checkout ../../before`: attacks the service of a checkout, by default this one, and
 * prints which attacks succeed. Ends with 1 if any does. `--quick` leaves out those that take half a minute.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { runSymbolon, startVault } from '../../kit/running-vault.ts'
import { RIGHTS_ATTACKS } from './attacks.ts'
import { openDestination, prepareAttack } from './stage.ts'

const { values } = parseArgs({
  options: { checkout: { type: 'string' }, quick: { type: 'boolean', default: false } },
})
const folder = mkdtempSync(join(tmpdir(), 'symbolon-rights-'))
const destination = await openDestination()
const where = { SYMBOLON_DATA_DIR: folder, SYMBOLON_EGRESS_ALLOW: destination.allow }
const otherTenant = 'already taken'
const made = await runSymbolon(['init', '--name', 'attacked'], where)
await runSymbolon(['init', '--name', otherTenant], where)
const vault = await startVault(folder, where, values.checkout)
const attacks = RIGHTS_ATTACKS.filter((it) => !values.quick || it.slow !== true)
let succeeded = 0
try {
  const managementKey = /^api_key\s+(\S+)$/m.exec(made.out)![1]!
  const on = await prepareAttack(vault.url, { managementKey, otherTenant, destination })
  for (const { name, succeeds } of attacks) {
    const success = await succeeds(on)
    if (success) succeeded++
    process.stdout.write(`${success ? 'SUCCEEDED' : 'failed   '}  ${name}\n`)
  }
} finally {
  await vault.stop()
  destination.close()
  rmSync(folder, { recursive: true })
}
process.stdout.write(`${attacks.length} attacks, ${succeeded} succeeded\n`)
if (succeeded > 0) process.exitCode = 1
