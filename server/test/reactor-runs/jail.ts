import assert from 'node:assert/strict'
import { JailRunner } from '../../src/adapters/jail/jail-runner.ts'
import { NO_WAY } from '../../src/adapters/jail/no-way.ts'
import { Sensitive } from '../../src/base/sensitive.ts'
import type { ReactorLevel } from '../../src/ports/reactor-runner.ts'
import type { MakeReactor } from './run.ts'

/** Longer than any run or check takes on the slowest machine. */
const TIMEOUT_MS = 600_000
/** For callbacks that never return. */
const BLOCKED_MS = 200

/** Makes reactors at a level, without a service around them, and checks that each run logs only what it says itself. */
export async function jailOf(level: ReactorLevel) {
  const said = new Map<unknown, string>()
  const open = async (overMsMax: number): Promise<JailRunner> => {
    const runner = await JailRunner.open({
      level,
      packages: [],
      authorities: [],
      waysOut: NO_WAY,
      output: (run, text) => void said.set(run, (said.get(run) ?? '') + text),
      wallsTestMsMax: TIMEOUT_MS,
      overMsMax,
    })
    assert.equal(runner.flaw, null)
    return runner
  }
  const patient = await open(TIMEOUT_MS)
  let impatient: Promise<JailRunner> | null = null
  let reactors = 0
  const make: MakeReactor = async (code, blocks) => {
    const reactorId = `reactor-${++reactors}`
    const runner = blocks ? await (impatient ??= open(BLOCKED_MS)) : patient
    return async (args) => {
      const run = {
        tenantId: 'tenant',
        reactorId,
        version: '1',
        code,
        args: new Sensitive(JSON.stringify(args)),
        configuration: new Sensitive('{}'),
        apiKey: null,
        destinations: null,
        timeoutMs: TIMEOUT_MS,
      }
      const outcome = await runner.run(run)
      assert.equal(outcome.kind, 'returned', JSON.stringify(outcome))
      const lines = said.get(run) ?? ''
      said.delete(run)
      assert.match(lines, OWN_OUTPUT, code)
      return outcome.kind === 'returned' ? JSON.parse(String(outcome.result.reveal())) : null
    }
  }
  const close = async (): Promise<void> => {
    await patient.close()
    await (await impatient)?.close()
  }
  return { make, close }
}

/** Of `leavingCode`: no run writes `late` before it is over. */
const OWN_OUTPUT = /^run (?:\d+|\[redacted\])\n(?!.*late)/s
