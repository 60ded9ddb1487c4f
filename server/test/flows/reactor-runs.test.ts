/** A short run; `npm run test:reactor-runs -- --runs 1000` is the long one. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Json, JsonObject } from '../../src/base/json.ts'
import { REACTOR_LEVELS } from '../../src/ports/reactor-runner.ts'
import { noBubblewrap } from '../kit/bubblewrap.ts'
import { startService, type RunningService } from '../kit/running-service.ts'
import { SEED } from '../kit/seed.ts'
import { jailOf } from '../reactor-runs/jail.ts'
import { reactorRuns } from '../reactor-runs/run.ts'

for (const level of REACTOR_LEVELS) {
  const skip = level === 'hardened' && noBubblewrap()
  describe(`a run at the level ${level}`, { skip }, () => {
    test('that left something behind ends its process, and reaches no later run', async (t) => {
      const { make, close } = await jailOf(level)
      t.after(close)
      const options = { seed: SEED, gapsMs: [0], reactors: 3, patient: true }
      // Most kinds at one level: the others differ in the walls alone.
      const tally = await (level === 'jail'
        ? reactorRuns(make, { ...options, count: 18, togetherMax: 0 })
        : reactorRuns(make, { ...options, count: 3, togetherMax: 2 }))
      assert.ok(tally.ended > 0 && tally.kept > 0, JSON.stringify(tally))
    })
  })
}

describe('POST /reactors/{id}/react', () => {
  let service: RunningService
  let key = ''

  before(async () => {
    service = await startService()
    const body = { name: 'caller', type: 'private', permissions: ['token:create', 'token:use'] }
    key = (await call('/applications', service.managementKey, body))['key'] as string
  })
  after(() => service.stop())

  async function call(path: string, by: string, body: Json): Promise<JsonObject> {
    const response = await fetch(service.url + path, {
      method: 'POST',
      headers: { 'bt-api-key': by, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    const text = await response.text()
    assert.ok(response.ok, `${response.status} ${text}`)
    return JSON.parse(text) as JsonObject
  }

  test('gives the caller after a run that left something behind its own result', async () => {
    const make = async (code: string) => {
      const reactor = { name: 'x', code, configuration: { a: 'b' } }
      const { id } = await call('/reactors', service.managementKey, reactor)
      return (args: JsonObject) => call(`/reactors/${id as string}/react`, key, { args })
    }
    // The service gives a process a second to finish, and on a busy machine that may be too short.
    const options = { seed: SEED, gapsMs: [0, 50], reactors: 3, patient: false }
    await reactorRuns(make, { ...options, count: 3, togetherMax: 2 })
  })
})
