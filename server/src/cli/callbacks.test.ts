import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import type { JsonObject } from '../base/json.ts'
import { callbackStage } from '../../test/kit/callback-stage.ts'
import { callbacksList, callbacksReplay } from './callbacks.ts'
import type { RunCommand } from './command.ts'

/** Starts a vault that listens, with three dead letters, and a client for it. */
async function given(t: TestContext) {
  const stage = await callbackStage()
  const { app, managementKey } = stage.vault
  stage.receive(() => ({ status: 410 }))
  const ids = [await stage.invoke(), await stage.invoke(), await stage.invoke()].toSorted()
  await stage.work()
  await app.listen({ host: '127.0.0.1', port: 0 })
  const folder = mkdtempSync(join(tmpdir(), 'symbolon-test-'))
  t.after(async () => {
    await app.close()
    rmSync(folder, { recursive: true })
  })
  const file = join(folder, 'key')
  writeFileSync(file, `${managementKey}\n`)
  const port = String((app.server.address() as AddressInfo).port)
  const run = async (command: RunCommand, flags: Record<string, string>) => {
    const lines: string[] = []
    const all = { host: '127.0.0.1', port, 'api-key-file': file, ...flags }
    const out = (line: string): void => void lines.push(line)
    return { status: await command({ flags: all, words: [], out, err: out }), lines }
  }
  return { ...stage, ids, run, folder }
}

describe('symbolon callbacks', () => {
  test('list shows the dead letters, for people and for programs', async (t) => {
    const { run, ids } = await given(t)
    const { lines, status } = await run(callbacksList, {})
    assert.equal(status, 0)
    assert.deepEqual(new Set(lines.map((it) => it.split(' ')[0])), new Set(ids))
    assert.match(lines[0]!, /receiver\.example {2}status 410, 1 attempts$/)
    const json = await run(callbacksList, { json: '' })
    const shown = json.lines.map((it) => (JSON.parse(it) as JsonObject)['id'])
    assert.deepEqual(new Set(shown), new Set(ids))
  })

  test('replay delivers one, or all, and says when one is not there', async (t) => {
    const { run, ids, sent, work, receive } = await given(t)
    receive(() => ({ status: 200 }))
    const [first] = ids
    assert.deepEqual(await run(callbacksReplay, { id: first! }), {
      status: 0,
      lines: [`${first}: is being delivered`],
    })
    await work()
    assert.equal(sent.length, 4)
    assert.deepEqual(await run(callbacksReplay, { id: first! }), {
      status: 1,
      lines: [`${first}: is not there`],
    })
    assert.equal((await run(callbacksReplay, { all: '' })).lines.length, 2)
    await work()
    assert.equal(sent.length, 6)
    assert.deepEqual((await run(callbacksList, {})).lines, [])
  })

  test('say where no service answers', async (t) => {
    const { run, vault } = await given(t)
    await vault.app.close()
    await assert.rejects(
      run(callbacksList, {}),
      /^Error: No service answers at http:\/\/127\.0\.0\.1:\d+: nothing listens there/,
    )
  })

  test('say where another service answers', async (t) => {
    const { run } = await given(t)
    const other = createServer((_, reply) => reply.end('<!DOCTYPE html>')).listen(0, '127.0.0.1')
    t.after(() => other.close())
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    await assert.rejects(
      run(callbacksList, { port: String(port) }),
      /^Error: What answers at http:\/\/127\.0\.0\.1:\d+ is another service/,
    )
  })

  test('ask for a key that may, in a file, and for one of the two ways to say which', async (t) => {
    const { run, folder, key } = await given(t)
    const file = join(folder, 'other')
    writeFileSync(file, key)
    await assert.rejects(run(callbacksList, { 'api-key-file': file }), /lacks the permission/)
    writeFileSync(file, 'first secret\nsecond secret\n')
    await assert.rejects(
      run(callbacksList, { 'api-key-file': file }),
      ({ name, message }: Error) =>
        name === 'ConfigError' && message.includes(file) && !message.includes('secret'),
    )
    await assert.rejects(
      run(callbacksList, { 'api-key-file': join(folder, 'none') }),
      /--api-key-file is '.*none', which cannot be read \(ENOENT\)\.$/,
    )
    await assert.rejects(run(callbacksReplay, {}), /Pass --id ID or --all/)
    await assert.rejects(run(callbacksReplay, { id: 'x', all: '' }), /Pass --id ID or --all/)
    const flags = { port: '1' }
    await assert.rejects(
      callbacksList({ flags, words: [], out: () => {}, err: () => {} }),
      /Pass --api-key/,
    )
  })
})
