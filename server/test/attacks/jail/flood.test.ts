/** Tests that a reactor can fill neither the service's memory with answers that it does not read, nor its log with empty lines. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { JailRunner } from '../../../src/adapters/jail/jail-runner.ts'
import { OUTPUT_LINE_BYTES } from '../../../src/adapters/jail/guest/frames.ts'
import { NO_WAY } from '../../../src/adapters/jail/no-way.ts'
import { REACTOR_OUTPUT_BYTES_MAX } from '../../../src/base/limits.ts'
import { Sensitive } from '../../../src/base/sensitive.ts'
import type { ReactorOutcome } from '../../../src/ports/reactor-runner.ts'

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

test('a process that asks for connections without an end, and leaves the answers unread, is ended', async () => {
  const { outcome } = await runAlone(FLOOD)
  assert.equal(outcome.kind, 'died', JSON.stringify(outcome))
})

/** Writes that many empty messages of output, each of which would be a line of the log. */
const EMPTY_LINES = `module.exports = async () => {
  const pipe = process._getActiveHandles().find((it) => it._handle?.fd === 3)
  const frame = Buffer.from([0, 0, 0, 4, 37, 0, 0, 0, 1])
  const frames = Buffer.concat(Array(1000).fill(frame))
  for (let n = 0; n < 20; n++) await new Promise((resolve) => pipe.write(frames, resolve))
}`

test('a process that fills the log with empty lines is ended', async () => {
  const { outcome, heard } = await runAlone(EMPTY_LINES)
  assert.equal(outcome.kind, 'died', JSON.stringify(outcome))
  assert.ok(heard <= REACTOR_OUTPUT_BYTES_MAX / OUTPUT_LINE_BYTES, `${heard} lines`)
})

test('code that prints nothing but empty lines is heard as far as its limit goes', async () => {
  const { outcome, heard } = await runAlone(
    'module.exports = () => { for (let n = 0; n < 20000; n++) console.log() }',
  )
  assert.equal(outcome.kind, 'returned', JSON.stringify(outcome))
  assert.equal(heard, Math.floor(REACTOR_OUTPUT_BYTES_MAX / (OUTPUT_LINE_BYTES + 1)))
})

/** Runs the code in a runner of its own, and returns how many messages of output were heard. */
async function runAlone(code: string): Promise<{ outcome: ReactorOutcome; heard: number }> {
  let heard = 0
  const runner = await JailRunner.open({
    level: 'jail',
    packages: [],
    authorities: [],
    output: () => void heard++,
    waysOut: NO_WAY,
    wallsTestMsMax: TIMEOUT_MS,
  })
  try {
    assert.equal(runner.flaw, null)
    const outcome = await runner.run({
      tenantId: 'tenant',
      reactorId: 'reactor',
      version: '1',
      code,
      args: new Sensitive('{}'),
      configuration: new Sensitive('{}'),
      apiKey: null,
      destinations: null,
      timeoutMs: TIMEOUT_MS,
    })
    return { outcome, heard }
  } finally {
    await runner.close()
  }
}
