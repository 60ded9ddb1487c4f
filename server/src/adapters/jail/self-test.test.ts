import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { ReactorOutcome, SandboxRun } from '../../ports/reactor-runner.ts'
import { outcomeOf, readResult } from './read-result.ts'
import { testWalls } from './self-test.ts'

const PROBE = fileURLToPath(new URL('../../../test/kit/jailed-code.probe.ts', import.meta.url))

test('testWalls() finds every attempt that nothing stops, and says which', async () => {
  const { flaw } = await testWalls(runBare, 'hardened')
  for (const it of ['read files', 'look into', 'write files', 'start programs']) {
    assert.match(flaw ?? '', new RegExp(it))
  }
  // Only root and the owner of Node's file may change its mode.
  const owns = [0, statSync(process.execPath).uid].includes(process.getuid!())
  assert.equal(flaw?.includes('change files'), owns)
  for (const it of ['see other processes', 'see what lies beside it', 'see whose machine']) {
    assert.match(flaw ?? '', new RegExp(it))
  }
  for (const it of ['list folders', 'signal', 'send packets', 'open ports', 'connect to sockets']) {
    assert.match(flaw ?? '', new RegExp(it))
  }
})

test('testWalls() finds that files are written where they cannot be removed', async () => {
  const removing = `{
    const fs = require('fs'), { rmSync } = fs
    fs.rmSync = (file) => { rmSync(file); throw new Error('EACCES') }
  }`
  const { flaw } = await testWalls((run) => runBare({ ...run, code: removing + run.code }), 'jail')
  assert.match(flaw ?? '', /write files/)
})

const complaints: [complaint: string, said: RegExp][] = [
  ['landlock_create_ruleset: ENOSYS', /^Landlock is missing/],
  [
    "EACCES: permission denied, open '/home/a/node' at restrictToFiles (landlock.ts)",
    /cannot read \/home\/a\/node: install the service where every user may read it/,
  ],
  [
    "bwrap: Can't find source path /home/a/node: Permission denied",
    /cannot read \/home\/a\/node: install the service where every user may read it/,
  ],
  ['seccomp: EINVAL', /^filters of system calls/],
  ['Cannot find the native Koffi module', /^the package koffi has no binary/],
  ['spawn /usr/bin/bwrap ENOENT', /^bubblewrap is missing.*install the package bubblewrap/],
  ['bwrap: No permissions to create new namespace', /^bubblewrap is refused.*max_user_namespaces/],
  ['bwrap: setting up uid map: Permission denied', /^bubblewrap is refused.*apparmor/],
  ['Error: namespaces: shared are processes, a network', /to be seen \(processes, a network\)/],
  ["bwrap: Can't mkdir /koffi", /^they cannot be built: /],
]
for (const [complaint, said] of complaints) {
  test(`testWalls() says what to do about ${complaint}`, async () => {
    const error = new Error('none', { cause: new Error(complaint) })
    assert.match((await testWalls(() => Promise.reject(error), 'hardened')).flaw ?? '', said)
  })
}

test('testWalls() does not take a test that did not end for a good one', async () => {
  assert.match((await testWalls(async () => ({ kind: 'died' }), 'jail')).flaw ?? '', /died/)
})

test('testWalls() lets the test take ten seconds, or as long as its argument says', async () => {
  const given: number[] = []
  const run = async ({ timeoutMs }: SandboxRun): Promise<ReactorOutcome> => {
    given.push(timeoutMs)
    return { kind: 'died' }
  }
  await testWalls(run, 'jail')
  await testWalls(run, 'jail', 7)
  assert.deepEqual(given, [10_000, 7])
})

/** Runs code without any walls. */
async function runBare({ code, args }: SandboxRun): Promise<ReactorOutcome> {
  const command = [PROBE, code, args.reveal(), 'bare']
  const child = spawnSync(process.execPath, command, { encoding: 'utf8' })
  const { result } = JSON.parse(child.stdout)
  return outcomeOf(readResult(Buffer.from(JSON.stringify(result))))
}
