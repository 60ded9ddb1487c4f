import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { isUuid } from '../../src/base/id.ts'
import type { Json, JsonObject } from '../../src/base/json.ts'
import { lacksPrograms } from '../kit/programs.ts'
import { startService } from '../kit/running-service.ts'
import { readDocument } from '../tidy/docs.ts'
import { SERVER } from '../tidy/source.ts'

const README = readDocument('README.md', 'the way in')

const skip = lacksPrograms('curl')

test(
  'the tour of the README, pasted into a shell, ends with a card masked, revealed, sent, not sent, and worked on, twice',
  { skip },
  async () => {
    const script = path.join(SERVER, 'test/tour/echo.ts')
    const echo = spawn(process.execPath, [script, '--port', '0'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const other = /localhost:\d+/.exec(await untilSaid(echo.stdout, 'It listens at'))![0]
    const service = await startService(secondStart(other))
    try {
      const said = await run(tour(service.managementKey, service.url, other))
      // The others are header sections of answers.
      const lines = said.split('\n').filter((it) => it.startsWith('{'))
      assert.equal(said.match(/^bt-proxy-destination-status: 200\r$/gim)?.length, 1)
      assert.equal(said.match(/^HTTP\/1\.1 200 OK\r$/gm)?.length, 2)
      const answers = lines.map((it) => JSON.parse(it) as JsonObject)
      const [card, nested, masked, revealed, sent, unsent, reacted, called] = answers
      assert.equal(answers.length, 8)
      const shown = { number: 'XXXXXXXXXXXX4242', expiration_month: 12, expiration_year: 2030 }
      assert.deepEqual(card?.['mask'], shown)
      assert.deepEqual(Object.keys(nested!), ['name', 'contacts', 'ssn'])
      assert.equal(masked?.['id'], card?.['id'])
      assert.deepEqual(masked?.['data'], shown)
      assert.deepEqual(revealed?.['data'], { ...shown, number: '4242424242424242', cvc: '123' })
      assert.equal(sent?.['request'], 'POST /charges')
      const received = { number: '4242424242424242', expiry: '12/2030' }
      assert.deepEqual(JSON.parse(sent['body'] as string), received)
      assert.match(sent['body'] as string, /^\{\n {2}"number"[^]*\n\}\n$/, 'as it was pasted')
      assert.match(JSON.stringify(unsent), /"body":"\{ \\"number\\": \\"\[token /)
      assert.deepEqual(reacted?.['raw'], { status: 200 })
      assert.ok(isUuid((reacted['tokens'] as { receipt: string }).receipt))
      const { raw, tokens } = called!['received'] as { raw: Json; tokens: { receipt: string } }
      assert.deepEqual(raw, { status: 200 })
      assert.ok(isUuid(tokens.receipt))
    } finally {
      await service.stop()
      echo.kill()
      await once(echo, 'exit')
    }
  },
)

/** Settings the README says to restart with, for a destination that listens at `other`. */
function secondStart(other: string): Record<string, string> {
  const line = /^(SYMBOLON_EGRESS_ALLOW=\S+ SYMBOLON_EXTRA_CA_FILE=\S+) npm start$/m.exec(
    README,
  )?.[1]
  assert.ok(line !== undefined)
  const settings = line.split(' ').map((it) => it.replace('localhost:4443', other).split('='))
  const { SYMBOLON_EXTRA_CA_FILE: file, ...rest } = Object.fromEntries(settings) as Settings
  return { ...rest, SYMBOLON_EXTRA_CA_FILE: path.join(SERVER, '..', file) }
}

type Settings = Record<'SYMBOLON_EGRESS_ALLOW' | 'SYMBOLON_EXTRA_CA_FILE', string>

/** The blocks of the tour, with the values the reader has to fill in. */
function tour(key: string, url: string, other: string): string {
  const [, text = ''] = /^## A tour in five minutes\n([^]*?)^## /m.exec(README) ?? []
  const blocks = [...text.matchAll(/^```sh\n([^]*?)^```$/gm)].map((it) => it[1]!)
  assert.ok(blocks.length > 5, `it saw ${blocks.length} blocks`)
  const lines = blocks.join('\n')
  assert.match(lines, /^KEY=key_local_mgt_\.\.\.$/m)
  assert.match(lines, /^URL=http:\/\/localhost:4400$/m)
  return lines
    .replace('key_local_mgt_...', key)
    .replace('http://localhost:4400', url)
    .replaceAll('localhost:4443', other)
}

async function run(text: string): Promise<string> {
  // With nothing of this machine's own that curl goes by, such as a proxy or a file of settings.
  const env = { PATH: process.env['PATH'], HOME: '/nonexistent' }
  const shell = spawn('sh', ['-eu'], { env, stdio: ['pipe', 'pipe', 'inherit'] })
  let out = ''
  shell.stdout.setEncoding('utf8').on('data', (chunk: string) => (out += chunk))
  shell.stdin.end(text)
  const [status] = (await once(shell, 'close')) as [number | null]
  assert.equal(status, 0, out)
  return out
}

async function untilSaid(stdout: NodeJS.ReadableStream, what: string): Promise<string> {
  let said = ''
  for await (const line of createInterface({ input: stdout })) {
    said += `${line}\n`
    if (line.includes(what)) {
      // Later output is not read, but must not block the server.
      stdout.resume()
      return said
    }
  }
  throw new Error(`The server ended before it was ready:\n${said}`)
}
