import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import type { JsonObject } from '../../src/base/json.ts'
import { readDocument } from '../tidy/docs.ts'
import { SERVER } from '../tidy/source.ts'

test('the tour of the README, pasted into a shell, ends with a masked and a revealed card', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'symbolon-tour-'))
  const server = spawn(process.execPath, [path.join(SERVER, 'bin/symbolon.cjs'), 'serve'], {
    cwd: folder,
    env: { PATH: process.env['PATH'], SYMBOLON_PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    const said = await untilReady(server.stdout)
    const key = /api_key\s+(key_local_mgt_\w+)/.exec(said)?.[1]
    const url = /ready at (http:\S+)/.exec(said)?.[1]
    assert.ok(key !== undefined && url !== undefined, said)

    const lines = (await run(script(key, url))).trim().split('\n')
    const answers = lines.map((it) => JSON.parse(it) as JsonObject)
    const [card, nested, masked, revealed] = answers
    assert.equal(answers.length, 4)
    const shown = { number: 'XXXXXXXXXXXX4242', expiration_month: 12, expiration_year: 2030 }
    assert.deepEqual(card?.['mask'], shown)
    assert.deepEqual(Object.keys(nested!), ['name', 'contacts', 'ssn'])
    assert.equal(masked?.['id'], card?.['id'])
    assert.deepEqual(masked?.['data'], shown)
    assert.deepEqual(revealed?.['data'], { ...shown, number: '4242424242424242', cvc: '123' })
  } finally {
    server.kill()
    await once(server, 'exit')
    await rm(folder, { recursive: true })
  }
})

/** The blocks of the tour, with what the reader is told to put in. */
function script(key: string, url: string): string {
  const readme = readDocument('README.md', 'the way in')
  const [, tour = ''] = /^## A tour in five minutes\n([^]*?)^## /m.exec(readme) ?? []
  const blocks = [...tour.matchAll(/^```sh\n([^]*?)^```$/gm)].map((it) => it[1]!)
  assert.ok(blocks.length > 5, `it saw ${blocks.length} blocks`)
  const text = blocks.join('\n')
  assert.match(text, /^KEY=key_local_mgt_\.\.\.$/m)
  assert.match(text, /^URL=http:\/\/localhost:4400$/m)
  return text.replace('key_local_mgt_...', key).replace('http://localhost:4400', url)
}

async function run(text: string): Promise<string> {
  const shell = spawn('sh', ['-eu'], { stdio: ['pipe', 'pipe', 'inherit'] })
  let out = ''
  shell.stdout.setEncoding('utf8').on('data', (chunk: string) => (out += chunk))
  shell.stdin.end(text)
  const [status] = (await once(shell, 'close')) as [number | null]
  assert.equal(status, 0, out)
  return out
}

async function untilReady(stdout: NodeJS.ReadableStream): Promise<string> {
  let said = ''
  for await (const line of createInterface({ input: stdout })) {
    said += `${line}\n`
    if (line.includes(' is ready at ')) {
      // What it says from now on is not read, but must not stop it.
      stdout.resume()
      return said
    }
  }
  throw new Error(`The server ended before it was ready:\n${said}`)
}
