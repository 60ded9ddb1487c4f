/**
 * Data passed to code must not leak: nothing of it may remain on a real disk, in a real log, or in the errors of
 * code that fails.
 */
import assert from 'node:assert/strict'
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { setUp } from '../../src/access/applications/set-up.ts'
import { SystemLog } from '../../src/adapters/system/system-log.ts'
import { createApp } from '../../src/app.ts'
import type { Json, JsonObject } from '../../src/base/json.ts'
import { openWorld } from '../../src/cli/open-world.ts'
import { readConfig } from '../../src/config.ts'
import { RunnerUnavailable, type ReactorOutcome } from '../../src/ports/reactor-runner.ts'
import { canaryOf, findTrace, findTracesInFiles, tracesOf } from '../kit/canary.ts'
import { withLuhnDigit } from '../kit/check-digits.ts'
import { returned, stillRunner, threw, type Ran } from '../kit/still-runner.ts'
import { STILL_SETTINGS } from '../kit/still-settings.ts'

const CANARY = canaryOf(29)
const TRACES = tracesOf(CANARY)
const CARD = { number: withLuhnDigit(`${CANARY.digits}000`), cvc: '123' }

test('nothing that code is given stays behind, in files, in the log, or in words about code that fails', async (t) => {
  const { call, runner, folder, management, close } = await vaultOnDisk(t)
  const create = ['token:create', 'token:use']
  const key = (await application(create))['key'] as string
  const { id: actor } = await application(create)
  const made = await call('/reactors', management, {
    name: 'x',
    code: `// ${CANARY.text}`,
    configuration: { KEY: CANARY.text, [CANARY.text]: [CANARY.digits] },
    application: { id: actor! },
  })
  assert.equal(made.status, 201, made.text)
  const path = `/reactors/${made.json()['id'] as string}/react`
  const card = await call('/tokens', key, { type: 'card', data: CARD })
  const name = await call('/tokens', key, { data: CANARY.text })
  const args = {
    card: `{{ ${card.json()['id'] as string} }}`,
    list: [`Dear {{ ${name.json()['id'] as string} }}`, CANARY.text],
  }

  const everything = ({ args: given, configuration, apiKey }: Ran): string =>
    JSON.stringify([given, configuration, apiKey])
  const ends: ((ran: Ran) => ReactorOutcome | Promise<ReactorOutcome>)[] = [
    (ran) => threw({ name: 'Error', message: everything(ran) }),
    (ran) => threw({ name: 'BadRequestError', errors: { a: [{ ran: everything(ran) }] } }),
    (ran) => threw({ name: everything(ran) }),
    (ran) => ({ kind: 'no-function', message: everything(ran), position: null }),
    () => ({ kind: 'timed-out' }),
    () => returned({ tokenize: { type: 'card', data: { number: `${CARD.number}0` } } }),
    () => Promise.reject(new RunnerUnavailable('Too many run')),
  ]
  for (const end of ends) {
    runner.behave = end
    const reply = await call(path, key, { args })
    assert.ok(reply.status >= 400, reply.text)
    assert.equal(findTrace(TRACES, Buffer.from(reply.text)), null, reply.text)
    assert.ok(!reply.text.includes(runner.ran.at(-1)!.apiKey!.slice(-12)), reply.text)
  }

  runner.behave = ({ args: given }) => returned({ raw: given, tokenize: given })
  const reply = await call(path, key, { args }, { 'bt-idempotency-key': 'once' })
  assert.equal(reply.status, 200, reply.text)
  assert.ok(findTrace(TRACES, Buffer.from(reply.text)) !== null, 'the canary was there to be found')
  assert.deepEqual(findTracesInFiles(TRACES, folder), [])
  await close()
  assert.deepEqual(findTracesInFiles(TRACES, folder), [])
  const keys = runner.ran.map((it) => {
    const bytes = Buffer.from(it.apiKey!)
    return { form: 'an ephemeral key', bytes }
  })
  assert.deepEqual(findTracesInFiles(keys, folder), [])

  async function application(permissions: string[]): Promise<JsonObject> {
    const body = { name: 'x', type: 'private', permissions }
    return (await call('/applications', management, body)).json()
  }
})

async function vaultOnDisk(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'symbolon-reactors-'))
  const descriptor = openSync(join(folder, 'log'), 'a')
  const log = new SystemLog({ level: 'info', descriptor })
  const config = readConfig({ 'data-dir': join(folder, 'data'), 'log-level': 'silent' }, {})
  const opened = await openWorld(config, { onFault: (error) => log.error('store_fault', error) })
  const runner = stillRunner()
  const world = { ...opened.world, log, runner }
  const { apiKey } = await setUp(world, opened.keyProvider, { name: 'a', plan: 'enterprise' })
  const app = createApp(world, STILL_SETTINGS)
  let closed = false
  t.after(async () => {
    await close()
    rmSync(folder, { recursive: true, force: true })
  })
  return {
    folder,
    runner,
    management: apiKey,
    call: async (url: string, key: string, body: Json, headers: Record<string, string> = {}) => {
      const reply = await app.inject({
        method: 'POST',
        url,
        headers: { 'bt-api-key': key, 'content-type': 'application/json', ...headers },
        payload: JSON.stringify(body),
      })
      const json = () => reply.json<JsonObject>()
      return { status: reply.statusCode, text: reply.payload, json }
    },
    close,
  }

  async function close(): Promise<void> {
    if (closed) return
    closed = true
    await app.close()
    await opened.close()
    await log.close()
    closeSync(descriptor)
  }
}
