/**
 * `npm run test:launcher --workspace server -- --kills 20 --node /usr/bin/node`: kills the launcher of a server that often
 * and prints how long its port and its data folder stayed taken. Exits with 1 if one did for more than a second.
 *
 * `--node` is an old Node that cannot replace its own process, such as Node 20; without it, one is pretended. `--weakened
 * unwatched` breaks the promise on purpose: then it has to exit with 1.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { pretendOldNode } from '../kit/old-node.ts'
import {
  installLauncher,
  killLaunchers,
  LAUNCHER_WEAKNESSES,
  oldNodeVersion,
  type LauncherKill,
} from './run.ts'

const LAUNCHER = path.join(import.meta.dirname, '../../bin/symbolon.cjs')

/** Promised by decision 0063. */
const FREE_MS_MAX = 1_000
const WAIT_MS = 5_000

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '20' },
    node: { type: 'string' },
    weakened: { type: 'string' },
  },
})
const weakness = LAUNCHER_WEAKNESSES.find((it) => it === values.weakened) ?? null
if (weakness === null && values.weakened !== undefined) {
  throw new Error(`--weakened is one of ${LAUNCHER_WEAKNESSES.join(', ')}`)
}
const out = (text: string): void => void process.stdout.write(`${text}\n`)
const folder = mkdtempSync(path.join(tmpdir(), 'symbolon-launcher-'))
try {
  const pretended = { version: '24.14.9', replaces: false }
  const node = values.node === undefined ? pretendOldNode(folder, pretended) : [values.node]
  out(`${values.node ?? 'pretended'}: Node ${oldNodeVersion(node)}`)
  const weakened = path.join(folder, 'weakened')
  const launcher = weakness === null ? LAUNCHER : installLauncher(weakened, weakness)
  let count = 0
  const onKill = ({ inFlight, portMs, folderMs }: LauncherKill): void => {
    const when = inFlight ? ', a request in flight' : ''
    out(`kill ${++count}${when}: port free after ${ms(portMs)}, folder after ${ms(folderMs)}`)
  }
  const kills = await killLaunchers({
    dataFolder: path.join(folder, 'data'),
    command: [...node, launcher],
    kills: Number(values.kills),
    waitMs: WAIT_MS,
    onKill,
  })
  for (const inFlight of [false, true]) {
    const some = kills.filter((it) => it.inFlight === inFlight)
    if (some.length === 0) continue
    const when = inFlight ? 'a request in flight' : 'an idle server'
    out(`${some.length} kills, ${when}: how long until free`)
    out(`  port     ${spread(some.map((it) => it.portMs))}`)
    out(`  folder   ${spread(some.map((it) => it.folderMs))}`)
  }
  if (kills.some((it) => Math.max(it.portMs, it.folderMs) > FREE_MS_MAX)) process.exitCode = 1
} finally {
  rmSync(folder, { recursive: true })
}

function spread(values: readonly number[]): string {
  const sorted = values.toSorted((a, b) => a - b)
  return `median ${ms(sorted[sorted.length >> 1]!)}, longest ${ms(sorted.at(-1)!)}`
}

function ms(value: number): string {
  return Number.isFinite(value) ? `${value.toFixed(0)} ms` : 'never'
}
