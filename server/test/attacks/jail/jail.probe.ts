/**
 * Runs every attack behind the walls of a level and, on request, once without walls, in namespaces of its own. Prints
 * which attacks succeeded where.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { JailRunner } from '../../../src/adapters/jail/jail-runner.ts'
import { NO_WAY } from '../../../src/adapters/jail/no-way.ts'
import { Sensitive } from '../../../src/base/sensitive.ts'
import { REACTOR_LEVELS } from '../../../src/ports/reactor-runner.ts'
import type { Attack } from './attack.ts'
import { JAVASCRIPT_ATTACKS } from './javascript-attacks.ts'
import { NATIVE_ATTACKS } from './native-attacks.ts'
import { AttackStage } from './stage.ts'

/** The probe's output. */
export interface JailProbeOutcome {
  readonly flaw: string | null
  /** Names of attacks, as they went. */
  readonly bare: Readonly<Record<string, boolean>>
  readonly jailed: Readonly<Record<string, boolean>>
  /** Whether another tenant's reactor still answered after all attacks. */
  readonly healthy: boolean
}

const BARE = fileURLToPath(new URL('bare.probe.ts', import.meta.url))
const ATTACKS = [...JAVASCRIPT_ATTACKS, ...NATIVE_ATTACKS]
/** Attacks that leave their process as it was. */
const TOGETHER = ATTACKS.filter((it) => !(it.apart ?? it.endless ?? it.seen ?? it.next))
const ENDLESS_MS = 300
/** Timeout for steps that must succeed, however slow the machine is. */
const PATIENCE_MS = 600_000

const { CANARY: canary = '', LEVEL, IN_THE_OPEN } = process.env
const level = REACTOR_LEVELS.find((it) => it === LEVEL)!
const [inside, outside] = [
  await AttackStage.open('inside', canary),
  await AttackStage.open('outside', canary),
]
const runner = await JailRunner.open({
  level,
  packages: ['koffi', '@koromix/koffi-linux-x64'],
  authorities: [],
  waysOut: NO_WAY,
  checks: false,
  wallsTestMsMax: PATIENCE_MS,
})
const [jailed, open] = await Promise.all([behindWalls(), IN_THE_OPEN === '' ? {} : inTheOpen()])
const last = resultOf(await runner.run(runOf('last', 'return "healthy"', PATIENCE_MS)))
const outcome: JailProbeOutcome = {
  flaw: runner.flaw,
  bare: open,
  jailed,
  healthy: last === 'healthy',
}
process.stdout.write(JSON.stringify(outcome))
await runner.close()
inside.close()
outside.close()
process.exit()

/** Runs attacks that do not disturb others one after another in one process, which must survive to report; others run alone. */
async function behindWalls(): Promise<Record<string, boolean>> {
  const bodies = TOGETHER.map(({ name, code }) => [name, code])
  const all = `const AsyncFunction = (async () => {}).constructor, done = {}
    for (const [name, body] of ${JSON.stringify(bodies)}) {
      done[name] = await AsyncFunction('args', 'require', body)(args, require).then(Boolean, () => false)
    }
    return done`
  const result = resultOf(await runner.run(runOf('all at once', all, 20_000)))
  const done = { ...(result as Record<string, boolean> | null) }
  for (const it of ATTACKS) done[it.name] ??= await inside.seen(it, inJail)
  return done
}

/**
 * Runs attacks without walls: those that do not disturb others in few processes, and again alone where they did not succeed,
 * since an earlier one may be why.
 */
async function inTheOpen(): Promise<Record<string, boolean>> {
  const done: Record<string, boolean> = {}
  for (let left = TOGETHER; left.length > 0;) {
    const results = await bareResults(left.map((it) => it.code))
    for (const [n, result] of results.entries()) done[left[n]!.name] = Boolean(result)
    // The last of them may have ended the process or replaced its program.
    left = left.slice(Math.max(1, results.length))
  }
  for (const it of ATTACKS) {
    if (done[it.name] !== true) done[it.name] = await outside.seen(it, withoutWalls)
  }
  return done
}

async function inJail({ name, code, next, endless }: Attack): Promise<unknown> {
  const timeoutMs = endless === true ? ENDLESS_MS : 20_000
  const first = await runner.run(runOf(`attacker ${name}`, code, timeoutMs))
  if (next === undefined) return resultOf(first)
  return resultOf(await runner.run(runOf(`neighbour ${name}`, next, timeoutMs)))
}

function runOf(
  tenantId: string,
  body: string,
  timeoutMs: number,
): Parameters<typeof runner.run>[0] {
  return {
    tenantId,
    reactorId: 'reactor',
    version: '1',
    code: `module.exports = async ({ args }) => { ${body} }`,
    args: new Sensitive(JSON.stringify(inside.surroundings())),
    configuration: new Sensitive('{}'),
    apiKey: null,
    destinations: null,
    timeoutMs,
  }
}

function resultOf(ended: Awaited<ReturnType<typeof runner.run>>): unknown {
  return ended.kind === 'returned' ? JSON.parse(String(ended.result.reveal())) : null
}

/** Whatever takes longer than it may has done what it wanted, if it wanted that. */
async function withoutWalls({ code, next, endless }: Attack): Promise<unknown> {
  const { said, signal } = await bare([code, ...(next === undefined ? [] : [next])], endless)
  if (endless === true) return signal === 'SIGKILL'
  try {
    return JSON.parse(said.trim().split('\n').at(-1)!).result
  } catch {
    return null
  }
}

/** Runs attacks in one process; returns their results, of as many as it could run. */
async function bareResults(codes: readonly string[]): Promise<unknown[]> {
  const { said } = await bare(codes)
  return said.split('\n').flatMap((it) => {
    try {
      return [JSON.parse(it).result]
    } catch {
      return []
    }
  })
}

async function bare(codes: readonly string[], endless = false) {
  const args = JSON.stringify(outside.surroundings())
  const child = spawn(process.execPath, [BARE, args], {
    stdio: ['pipe', 'pipe', 'ignore'],
    timeout: endless ? ENDLESS_MS : PATIENCE_MS,
    killSignal: 'SIGKILL',
  })
  child.stdin.on('error', () => {}).end(JSON.stringify(codes))
  let said = ''
  child.stdout.on('data', (it) => (said += it))
  const [, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
  return { said, signal }
}
