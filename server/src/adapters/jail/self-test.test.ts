import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Sensitive } from '../../base/sensitive.ts'
import { testWalls } from './self-test.ts'

const PROBE = fileURLToPath(new URL('../../../test/kit/jailed-code.probe.ts', import.meta.url))

test('testWalls() finds every attempt that nothing stops, and says which', async () => {
  const flaw = await testWalls(async ({ code, args }) => {
    const child = spawnSync(process.execPath, [PROBE, code, args.reveal(), 'bare'], {
      encoding: 'utf8',
    })
    const { result } = JSON.parse(child.stdout)
    return { kind: 'returned', result: new Sensitive(JSON.stringify(result)) }
  }, 'hardened')
  for (const it of ['read files', 'look into', 'write files', 'change files', 'start programs']) {
    assert.match(flaw ?? '', new RegExp(it))
  }
  for (const it of ['see other processes', 'see what lies beside it', 'see whose machine']) {
    assert.match(flaw ?? '', new RegExp(it))
  }
  for (const it of ['list folders', 'signal', 'send packets', 'open ports', 'connect to sockets']) {
    assert.match(flaw ?? '', new RegExp(it))
  }
})

test('testWalls() says which wall is missing when the launcher cannot build it', async () => {
  const complaint = new Error('landlock_create_ruleset: ENOSYS')
  const flaw = await testWalls(
    () => Promise.reject(new Error('none', { cause: complaint })),
    'jail',
  )
  assert.match(flaw ?? '', /^Landlock is missing/)
})

test('testWalls() does not take a test that did not end for a good one', async () => {
  assert.match((await testWalls(async () => ({ kind: 'died' }), 'jail')) ?? '', /died/)
})
