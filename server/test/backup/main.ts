/**
 * `npm run test:backup --workspace server -- --tokens 1000000`: backs up that many tokens under load, and restores
 * them, as often as requested. Throws when data is missing.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { backUpUnderLoad } from './run.ts'

const { values } = parseArgs({
  options: {
    tokens: { type: 'string', default: '100000' },
    backups: { type: 'string', default: '2' },
    callers: { type: 'string', default: '4' },
  },
})
const folder = mkdtempSync(path.join(tmpdir(), 'symbolon-backup-'))
const report = (line: string): void => void process.stdout.write(`${line}\n`)
const [tokens, backups] = [Number(values.tokens), Number(values.backups)]
try {
  await backUpUnderLoad({ folder, tokens, backups, callers: Number(values.callers), report })
} finally {
  rmSync(folder, { recursive: true })
}
