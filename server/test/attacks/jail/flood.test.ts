/** Tests that a reactor cannot fill the service's memory with answers that it does not read. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { JailRunner } from '../../../src/adapters/jail/jail-runner.ts'
import { NO_WAY } from '../../../src/adapters/jail/no-way.ts'
import { Sensitive } from '../../../src/base/sensitive.ts'

/** Longer than the run takes on the slowest machine. */
const TIMEOUT_MS = 600_000

/** Fixed, so that the code ends even if nothing stops it. Their refusals have almost twice REACTOR_UNREAD_BYTES_MAX. */
const REQUESTS = 800_000

/** Asks for that many connections over the pipe to the service, without reading its answers. */
const FLOOD = `module.exports = async () => {
  const pipe = process._getActiveHandles().find((it) => it._handle?.fd === 3)
  pipe._handle.readStop()
  const target = Buffer.from('{"host":"a","port":1}')
  const bytes = 9 + target.length
  const together = 4096
  for (let sent = 0; sent < ${REQUESTS}; sent += together) {
    const frames = Buffer.alloc(bytes * together)
    for (let n = 0; n < together; n++) {
      const at = n * bytes
      frames.writeUInt32BE(4 + target.length, at)
      frames[at + 4] = 68
      frames.writeUInt32BE(1e6 + sent + n, at + 5)
      target.copy(frames, at + 9)
    }
    await new Promise((resolve) => pipe.write(frames, resolve))
  }
  pipe._handle.readStart()
}`

test('a process that leaves answers of the service unread is ended', async () => {
  const runner = await JailRunner.open({
    level: 'jail',
    packages: [],
    authorities: [],
    waysOut: NO_WAY,
    wallsTestMsMax: TIMEOUT_MS,
  })
  try {
    assert.equal(runner.flaw, null)
    const outcome = await runner.run({
      tenantId: 'tenant',
      reactorId: 'reactor',
      version: '1',
      code: FLOOD,
      args: new Sensitive('{}'),
      configuration: new Sensitive('{}'),
      apiKey: null,
      destinations: null,
      timeoutMs: TIMEOUT_MS,
    })
    assert.equal(outcome.kind, 'died', JSON.stringify(outcome))
  } finally {
    await runner.close()
  }
})
