import assert from 'node:assert/strict'
import { JailRunner } from '../../src/adapters/jail/jail-runner.ts'
import { NO_WAY } from '../../src/adapters/jail/no-way.ts'
import { Sensitive } from '../../src/base/sensitive.ts'
import type { ReactorLevel } from '../../src/ports/reactor-runner.ts'
import type { MakeReactor } from './run.ts'

/** Longer than any run or check takes on the slowest machine. */
const TIMEOUT_MS = 600_000

/** Creates reactors at a level, without a service. `overMsMax` bounds the time that a leftover may block a process. */
export async function jailOf(level: ReactorLevel, overMsMax?: number) {
  const runner = await JailRunner.open({
    level,
    packages: [],
    authorities: [],
    waysOut: NO_WAY,
    output: () => {},
    wallsTestMsMax: TIMEOUT_MS,
    ...(overMsMax !== undefined && { overMsMax }),
  })
  assert.equal(runner.flaw, null)
  let reactors = 0
  const make: MakeReactor = async (code) => {
    const reactorId = `reactor-${++reactors}`
    return async (args) => {
      const outcome = await runner.run({
        tenantId: 'tenant',
        reactorId,
        version: '1',
        code,
        args: new Sensitive(JSON.stringify(args)),
        configuration: new Sensitive('{}'),
        apiKey: null,
        destinations: null,
        timeoutMs: TIMEOUT_MS,
      })
      assert.equal(outcome.kind, 'returned', JSON.stringify(outcome))
      return outcome.kind === 'returned' ? JSON.parse(outcome.result.reveal()) : null
    }
  }
  return { make, close: () => runner.close() }
}
