/** Tests that the results of reactors, however they are built, are not parsed on the thread that answers all requests. */
import assert from 'node:assert/strict'
import { after, before, mock, test } from 'node:test'
import { JailRunner } from '../../../src/adapters/jail/jail-runner.ts'
import { NO_WAY } from '../../../src/adapters/jail/no-way.ts'
import { REACTOR_RESULT_INLINE_BYTES } from '../../../src/base/limits.ts'
import { Sensitive } from '../../../src/base/sensitive.ts'
import type { ReactorOutcome } from '../../../src/ports/reactor-runner.ts'

/** Longer than a run takes on the slowest machine. */
const TIMEOUT_MS = 600_000

let runner: JailRunner

before(async () => {
  runner = await JailRunner.open({
    level: 'jail',
    packages: [],
    authorities: [],
    waysOut: NO_WAY,
    wallsTestMsMax: TIMEOUT_MS,
  })
  assert.equal(runner.flaw, null)
})

after(() => runner.close())

/** Sends the text as the result of the first run, past what the guest checks itself. */
const saying = (text: string): string => `module.exports = async () => {
  const pipe = process._getActiveHandles().find((it) => it._handle?.fd === 3)
  const text = Buffer.from(${text})
  const head = Buffer.from([0, 0, 0, 0, 33, 0, 0, 0, 1])
  head.writeUInt32BE(4 + text.length)
  pipe.write(Buffer.concat([head, text]))
  await new Promise(() => {})
}`

const BYTES = 5 * 1024 * 1024

const HOSTILE: Readonly<Record<string, string>> = {
  'brackets in brackets': `'['.repeat(${BYTES / 2}) + ']'.repeat(${BYTES / 2})`,
  'brackets beside brackets': `'[' + '[],'.repeat(${Math.floor(BYTES / 3) - 1}) + '[]]'`,
  'more members than there may be': `'[' + '{"a":1},'.repeat(200000) + '1]'`,
  'no JSON': `'{"raw":' + '1'.repeat(${BYTES - 10})`,
}

for (const [name, text] of Object.entries(HOSTILE)) {
  test(`a result of ${name} is refused elsewhere than on the event loop`, async () => {
    const { outcome, longest } = await parsedHere(() => run(name, saying(text)))
    assert.equal(outcome.kind, name === 'no JSON' ? 'died' : 'unsendable')
    assert.ok(longest <= REACTOR_RESULT_INLINE_BYTES, `${longest} characters were parsed here`)
  })
}

test('a long result is parsed elsewhere than on the event loop, and arrives whole', async () => {
  const code = `module.exports = () => ({ other: [1], raw: { 'ü': 'x'.repeat(1e6), y: [null] }, tokenize: ['z'] })`
  const { outcome, longest } = await parsedHere(() => run('long', code))
  assert.equal(outcome.kind, 'returned')
  assert.ok(longest <= REACTOR_RESULT_INLINE_BYTES, `${longest} characters were parsed here`)
  const { raw, tokenize, result } = outcome
  const text = result.reveal()
  const whole = { other: [1], raw: { ü: 'x'.repeat(1e6), y: [null] }, tokenize: ['z'] }
  assert.deepEqual(JSON.parse(String(text)), whole)
  assert.deepEqual(JSON.parse(String(text.subarray(...raw!))), whole.raw)
  assert.deepEqual(JSON.parse(String(text.subarray(...tokenize!))), whole.tokenize)
})

/** Returns the outcome, and the length of the longest text that was parsed on this thread meanwhile. */
async function parsedHere(
  work: () => Promise<ReactorOutcome>,
): Promise<{ outcome: ReactorOutcome; longest: number }> {
  let longest = 0
  const { parse } = JSON
  mock.method(JSON, 'parse', (text: string): unknown => {
    longest = Math.max(longest, text.length)
    return parse(text)
  })
  try {
    return { outcome: await work(), longest }
  } finally {
    mock.restoreAll()
  }
}

function run(reactorId: string, code: string): Promise<ReactorOutcome> {
  return runner.run({
    tenantId: 'tenant',
    reactorId,
    version: '1',
    code,
    args: new Sensitive('{}'),
    configuration: new Sensitive('{}'),
    apiKey: null,
    destinations: null,
    timeoutMs: TIMEOUT_MS,
  })
}
