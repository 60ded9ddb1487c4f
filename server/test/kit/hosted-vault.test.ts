import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startHostedVault } from './hosted-vault.ts'
import { temporaryFolder } from './running-vault.ts'

describe('startHostedVault()', () => {
  test('serves one vault after another in one process, each with its own output', async (t) => {
    const first = await startHostedVault(temporaryFolder(t))
    const second = await startHostedVault(temporaryFolder(t))
    assert.notEqual(first.pid, second.pid, 'two at the same time have a process each')
    const ended = await first.stop()
    assert.deepEqual([ended.status, ended.err], [0, ''])
    const third = await startHostedVault(temporaryFolder(t))
    t.after(() => Promise.all([second, third].map((it) => it.stop())))
    assert.equal(third.pid, first.pid)
    assert.equal((await fetch(`${third.url}/health/ready`)).status, 200)
    await assert.rejects(fetch(`${first.url}/health/ready`))
    // Stopped again, as hooks do, it leaves the vault that is served now alone.
    assert.deepEqual(await first.stop(), ended)
    assert.equal((await fetch(`${third.url}/health/ready`)).status, 200)
    assert.match(ended.out, /"event":"stopping","reason":"SIGTERM"/)
    assert.equal(first.printed(), ended.out)
    const keys = [first, third].map(({ greeting }) => /api_key\s+(\S+)/.exec(greeting)![1])
    assert.notEqual(keys[0], keys[1])
    assert.ok(!third.printed().includes(keys[0]!))
  })

  test('throws what a failed start prints, and serves again', async (t) => {
    const folder = temporaryFolder(t)
    await assert.rejects(startHostedVault(folder, { SYMBOLON_PORT: '70000' }), /must be a port/)
    const vault = await startHostedVault(folder)
    assert.equal((await vault.stop()).status, 0)
  })

  test('ends with its process when that is killed, and the next vault has another', async (t) => {
    const folder = temporaryFolder(t)
    const killed = await startHostedVault(folder)
    assert.equal((await killed.stop('SIGKILL')).status, null)
    const next = await startHostedVault(folder)
    t.after(() => next.stop())
    assert.notEqual(next.pid, killed.pid)
    assert.doesNotMatch(next.greeting, /api_key/)
  })

  test('refuses variables that a running process does not read again', async (t) => {
    await assert.rejects(startHostedVault(temporaryFolder(t), { TZ: 'UTC' }), /TZ is for a whole/)
  })
})
