/** Breaks a vault, runs `symbolon doctor`, follows its remedy, and runs it again. */
import assert from 'node:assert/strict'
import { cpSync, lstatSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { LOCAL_MACHINE, type HostMachine } from '../../src/adapters/system/host-machine.ts'
import type { CheckStatus } from '../../src/cli/doctor/check.ts'
import { CHECKS } from '../../src/cli/doctor/checks.ts'
import { diagnose } from '../../src/cli/doctor/doctor.ts'
import type { CheckResult } from '../../src/cli/doctor/run-checks.ts'
import { ignoredVariables, readConfig, unknownVariables } from '../../src/config.ts'
import { startHostedVault } from '../kit/hosted-vault.ts'
import { runSymbolon, temporaryFolder } from '../kit/running-vault.ts'

export type SettingVariables = Readonly<Record<string, string>>

export interface StoppedVault {
  /** Contains the data folder, and anything that a test puts beside it. */
  readonly home: string
  readonly folder: string
  readonly variables: SettingVariables
  readonly apiKey: string
  readonly tenantId: string
}

type TestScope = Parameters<typeof temporaryFolder>[0]

/** Creates a vault with the root key kept elsewhere, so that every check passes. */
export async function stoppedVault(t: TestScope): Promise<StoppedVault> {
  const home = temporaryFolder(t)
  const folder = join(home, 'data')
  const variables = variablesOf(home)
  const { out, err } = await runSymbolon(['init', '--json'], variables)
  assert.equal(err, '')
  const { api_key: apiKey, tenant_id: tenantId } = JSON.parse(out) as Record<string, string>
  return { home, folder, variables, apiKey: apiKey!, tenantId: tenantId! }
}

/** Creates a vault by starting a service, and kills that. */
export async function killedVault(t: TestScope): Promise<StoppedVault> {
  const home = temporaryFolder(t)
  const [folder, variables] = [join(home, 'data'), variablesOf(home)]
  const service = await startHostedVault(folder, variables)
  await service.stop('SIGKILL')
  const shown = (name: string): string =>
    new RegExp(`${name}\\s+(\\S+)`).exec(service.greeting)![1]!
  return { home, folder, variables, apiKey: shown('api_key'), tenantId: shown('tenant_id') }
}

export function variablesOf(home: string): Record<string, string> {
  return {
    SYMBOLON_DATA_DIR: join(home, 'data'),
    SYMBOLON_ROOT_KEY_FILE: join(home, 'root.key'),
    SYMBOLON_PORT: '0',
  }
}

export interface Examined {
  readonly variables: SettingVariables
  readonly machine?: Partial<HostMachine>
  readonly bubblewrap?: string
  /** File beside which packages of reactors are looked for. */
  readonly anchor?: string
  /** Also tests the sandbox, which takes longer than everything else. */
  readonly sandbox?: true
  /** Also reads every page of the database, in a process of its own. */
  readonly integrity?: true
}

/** Returns the results of all checks, by name. */
export async function examine(input: Examined): Promise<Map<string, CheckResult>> {
  const { variables, machine, bubblewrap, anchor, sandbox, integrity } = input
  const results = await diagnose(
    {
      config: readConfig({}, variables),
      unknownVariables: unknownVariables(variables),
      ignoredVariables: ignoredVariables({}, variables),
      machine: { ...LOCAL_MACHINE, ...machine },
      sandboxOptions: {
        wallsTestMsMax: PATIENCE_MS,
        ...(bubblewrap !== undefined && { bubblewrap }),
        ...(anchor !== undefined && { anchor }),
      },
    },
    CHECKS.filter((it) => sandbox === true || it.group !== 'reactors')
      .filter((it) => integrity === true || it.name !== 'integrity')
      .map((it) => ({ ...it, timeoutMs: PATIENCE_MS })),
  )
  return new Map(results.map((it) => [it.name, it]))
}

/** Replaces every deadline, so that a busy machine does not fail these tests. */
const PATIENCE_MS = 10 * 60_000

/** Asserts that one check has this status and a remedy that matches, and returns the remedy. */
export function assertFound(
  results: Map<string, CheckResult>,
  name: string,
  status: CheckStatus,
  remedy: RegExp,
): string {
  const found = results.get(name)
  assert.equal(found?.status, status, `${name}: ${found?.message}`)
  assert.match(found.remedy ?? '', remedy)
  return found.remedy!
}

/** Asserts that no other check fails: a cause is reported once, and checks that depend on it are skipped. */
export function assertAlone(results: Map<string, CheckResult>, name: string): void {
  const failures = [...results.values()].filter((it) => it.status === 'failed')
  assert.deepEqual(
    failures.map((it) => it.name),
    [name],
    failures.map((it) => it.message).join('\n'),
  )
}

export function assertOk(results: Map<string, CheckResult>, ...names: readonly string[]): void {
  for (const it of names) {
    const found = results.get(it)
    assert.equal(found?.status, 'ok', `${it}: ${found?.message} ${found?.remedy ?? ''}`)
  }
}

/** Asserts that every check is fine; tests run in temporary folders, which may be on a volatile file system. */
export function assertHealthy(results: Map<string, CheckResult>): void {
  const names = [...results.keys()].filter((it) => !OF_THE_MACHINE.has(it))
  assertOk(results, ...names)
}

/** Checks whose result depends on the test machine. */
const OF_THE_MACHINE = new Set(['file-system', 'memory', 'open-files', 'disk-space', 'inodes'])

/** Repeats until the answer is yes, however long that takes on this machine. */
export async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await sleep(20)
}

/** Runs `symbolon doctor --json` as an operator would, and returns its output. */
export interface Reported {
  readonly exitCode: number | null
  readonly status: CheckStatus
  readonly checks: Map<string, CheckResult>
}

export async function runDoctor(
  variables: SettingVariables,
  ...flags: string[]
): Promise<Reported> {
  const {
    status: exitCode,
    out,
    err,
  } = await runSymbolon(['doctor', '--json', ...flags], {
    ...variables,
  })
  assert.equal(err, '')
  const { status, checks } = JSON.parse(out) as { status: CheckStatus; checks: CheckResult[] }
  return { exitCode, status, checks: new Map(checks.map((it) => [it.name, it])) }
}

/** Backs the vault up, and returns the remedy that needs it: restores beside a copy, and returns the settings of that. */
export async function backedUp({
  home,
  variables,
}: StoppedVault): Promise<(copy: StoppedVault) => Promise<SettingVariables>> {
  const [secret, file] = [join(home, 'backup.key'), join(home, 'backup.age')]
  const key = await runSymbolon(['backup', 'key', '--to', secret])
  const recipient = key.out.trim()
  const made = await runSymbolon(['backup', '--to', file, '--recipient', recipient], variables)
  assert.equal(made.status, 0, made.err)
  return async (copy) => {
    const restored = { ...copy.variables, SYMBOLON_DATA_DIR: join(copy.home, 'restored') }
    const done = await runSymbolon(['restore', '--from', file, '--identity', secret], restored)
    assert.equal(done.status, 0, done.err)
    return restored
  }
}

/** Copies a stopped vault, so that tests can break the copy; to a path that must be quoted in a shell. */
export function copyOf(t: TestScope, { folder, home, ...printed }: StoppedVault): StoppedVault {
  const copy = join(temporaryFolder(t), "it's a copy")
  mkdirSync(copy)
  mkdirSync(join(copy, 'data'), { mode: 0o700 })
  // A killed service leaves its socket, which cannot be copied.
  const filter = (it: string): boolean => !lstatSync(it).isSocket()
  cpSync(folder, join(copy, 'data'), { recursive: true, filter })
  cpSync(join(home, 'root.key'), join(copy, 'root.key'))
  return { ...printed, home: copy, folder: join(copy, 'data'), variables: variablesOf(copy) }
}
