/**
 * `npm run test:guest-costs --workspace server -- --seconds 10`: reactors of a whole service that attack its descriptors and its
 * memory. Prints what each attack costs, and ends with 1 if one costs too much. `--checkout ../../before` attacks another version,
 * `--only net` one attack.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { REACTOR_LEVELS } from '../../../src/ports/reactor-runner.ts'
import { excessOf, startCostlyGuests } from './costly-guests.ts'
import { OPENING, UNREADING } from './guest-attacks.ts'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '10' },
    level: { type: 'string', default: 'hardened' },
    checkout: { type: 'string' },
    only: { type: 'string' },
  },
})
const level = REACTOR_LEVELS.find((it) => it === values.level)!
const attacks = [...OPENING, ...UNREADING].filter((it) => it.name === (values.only ?? it.name))
const folder = mkdtempSync(join(tmpdir(), 'symbolon-guest-costs-'))
const guests = await startCostlyGuests({ level, folder, checkout: values.checkout })
let succeeded = 0
try {
  for (const it of attacks) {
    const costs = await guests.attack(it, Number(values.seconds))
    const excess = excessOf(it, costs)
    if (excess !== '') succeeded++
    process.stdout.write(
      `${excess === '' ? 'failed   ' : 'SUCCEEDED'}  ${it.name}: ${JSON.stringify(costs)} ${excess}\n`,
    )
  }
} finally {
  await guests.stop()
  rmSync(folder, { recursive: true })
}
process.stdout.write(`${attacks.length} attacks, ${succeeded} succeeded\n`)
if (succeeded > 0) process.exitCode = 1
