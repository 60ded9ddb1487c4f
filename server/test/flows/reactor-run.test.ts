import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { reactorRun } from '../../src/cli/reactor-run.ts'
import type { Flags } from '../../src/config.ts'
import { noBubblewrap } from '../kit/bubblewrap.ts'
import { runSymbolon, temporaryFolder, type Finished } from '../kit/running-vault.ts'
import { AUTHORITY_FILE, onRequest, testDestination } from '../kit/test-destination.ts'

const PROGRAM = fileURLToPath(new URL('../../bin/symbolon.cjs', import.meta.url))

const HASH = `const { createHash } = require('crypto')
  module.exports = ({ args, configuration, bt }) => {
    console.log('number', args.number)
    const hash = createHash('md5').update(args.number + configuration.salt).digest('hex')
    return { raw: { hash, bt } }
  }`

describe('symbolon reactor run', () => {
  const levels = { jail: false, hardened: noBubblewrap(), portable: false } as const
  for (const [level, skip] of Object.entries(levels)) {
    test(`runs a file at the level ${level}, and tells what it took`, { skip }, async (t) => {
      const [code, args, configuration] = files(t, {
        'hash.js': HASH,
        'args.json': '{ "number": "4242" }',
        'configuration.json': '{ "salt": "pepper" }',
      })
      const given = ['--args', args!, '--configuration', configuration!, '--level', level]
      const { status, out, err } = await runSymbolon(['reactor', 'run', code!, ...given])
      assert.deepEqual(JSON.parse(out), {
        raw: { hash: '59a0465c2661ed5d147e0f0403785eec', bt: null },
      })
      assert.match(
        err,
        /^number 4242\nIt returned after \d+\.\d ms, with \d+\.\d MiB; .*reactors? runs? as .+\n$/,
      )
      assert.equal(status, 0)
    })
  }

  test('hands the code a secret as a string, and refuses the placeholder of one', async (t) => {
    const [code, held, shown] = files(t, {
      'same.js': 'module.exports = ({ configuration }) => ({ raw: configuration })',
      'held.json': '{ "salt": { "secret": "pepper" }, "more": { "a": 1 } }',
      'shown.json': '{ "salt": "__SYMBOLON_WRITE_ONLY_SECRET__" }',
    })
    const run = async (file: string) =>
      await runSymbolon(['reactor', 'run', code!, '--configuration', file, '--level', 'portable'])
    const { out } = await run(held!)
    assert.deepEqual(JSON.parse(out), { raw: { salt: 'pepper', more: { a: 1 } } })
    const refused = await run(shown!)
    assert.equal(refused.status, 1)
    assert.match(refused.err, /shown\.json holds the placeholder of a secret: put the secret in/)
  })

  const ends: [code: string, said: RegExp][] = [
    [
      'module.exports = () => { throw new TypeError("no") }',
      /^TypeError: no\n {2}at line 1, column 32\nIt threw after /,
    ],
    [
      'module.exports = () => require("uuid/v4")',
      /^Error: Cannot find module 'uuid\/v4': .*\n {2}at line 1, column 24\nIt threw after /,
    ],
    [
      `const { BadRequestError } = require('@basis-theory/basis-theory-reactor-formulas-sdk-js')
       module.exports = () => { throw new BadRequestError({ a: ['is wrong'] }) }`,
      /^BadRequestError: Bad Request\n {2}status: 400\n {2}errors: \{"a":\["is wrong"\]\}\n {2}at line 2, column 39\nIt threw/,
    ],
    ['module.exports = {}', /^The code exports no function: .*\nThere was nothing to run/],
    ['module.exports = (', /^The code does not parse: .*\n {2}at line 1, column 19\n/],
    ['module.exports = await 1', /^`await` is used outside .*\n {2}at line 1, column 18\n/],
    ['module.exports = () => process.abort()', /^Its process died/],
    [
      'module.exports = () => { for (const all = [];;) all.push(Buffer.alloc(1e7, 1)) }',
      /^It took too much memory/,
    ],
  ]
  for (const [code, said] of ends) {
    test(`ends with 1 and says why for ${code.split('\n').at(-1)}`, async (t) => {
      const [file] = files(t, { 'code.js': code })
      const { status, out, err } = await runHere([file!])
      assert.deepEqual([status, out], [1, ''])
      assert.match(err, said)
    })
  }

  test('refuses what it cannot read in one sentence, and runs nothing', async (t) => {
    const [code, broken] = files(t, { 'a.js': 'module.exports = () => 1', 'args.json': '{' })
    const cases: [words: string[], flags: Flags, said: RegExp][] = [
      [[], {}, /takes the name of one file/],
      [[code!, code!], {}, /takes the name of one file/],
      [[`${code!}x`], {}, /a\.jsx cannot be read \(ENOENT\)/],
      [[path.dirname(code!)], {}, /cannot be read \(EISDIR\)/],
      [[code!], { args: broken! }, /args\.json is no JSON/],
      [
        [code!],
        { level: 'cell' },
        /^--level is 'cell', but must be one of jail, hardened, portable\.$/,
      ],
    ]
    for (const [words, flags, message] of cases) {
      await assert.rejects(runHere(words, flags), { name: 'ConfigError', message })
    }
    const { status, out, err } = await runSymbolon(['reactor', 'run', `${code!}x`])
    assert.deepEqual([status, out], [1, ''])
    assert.match(err, /^symbolon reactor run: .*cannot be read.*\n$/)
  })

  test('sends where the settings let it, and nowhere else', async (t) => {
    const destination = await testDestination(
      onRequest((socket) => socket.end('HTTP/1.1 204 No Content\r\n\r\n')),
      { certificate: 'destination' },
    )
    t.after(() => destination.close())
    const url = `https://localhost:${destination.port}`
    const [file] = files(t, {
      'a.js': `module.exports = async () => (await fetch('${url}')).status`,
    })
    const allowed = {
      SYMBOLON_EGRESS_ALLOW: `localhost:${destination.port}`,
      SYMBOLON_EXTRA_CA_FILE: AUTHORITY_FILE,
    }
    assert.equal((await runSymbolon(['reactor', 'run', file!], allowed)).out, '204\n')
    const refused = await runSymbolon(['reactor', 'run', file!])
    assert.deepEqual([refused.status, refused.out], [1, ''])
    assert.equal(destination.accepted(), 1)
  })

  test('with --watch runs again when the file changes, until it is stopped', async (t) => {
    const [file] = files(t, { 'a.js': 'module.exports = () => "first"' })
    const child = spawn(process.execPath, [PROGRAM, 'reactor', 'run', file!, '--watch'], {
      env: {},
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    t.after(() => child.kill('SIGKILL'))
    const seen = { out: '', err: '' }
    child.stdout.on('data', (it) => (seen.out += it))
    child.stderr.on('data', (it) => (seen.err += it))
    // The summary is written last, but may be read first: from then on it watches.
    while (!seen.err.includes('It returned') || seen.out === '') await pause(10)
    assert.equal(seen.out, '"first"\n')
    while (!seen.out.includes('"second"')) {
      writeFileSync(file!, 'module.exports = () => "second"')
      await pause(500)
    }
    child.kill('SIGINT')
    const [status] = await once(child, 'close')
    assert.equal(status, 0)
  })
})

/** The command in this very process, which is quicker. */
async function runHere(words: readonly string[], flags: Flags = {}): Promise<Finished> {
  let [out, err] = ['', '']
  const status = await reactorRun({
    flags,
    words,
    out: (line) => (out += `${line}\n`),
    err: (line) => (err += `${line}\n`),
  })
  return { status, out, err }
}

/** Writes them to a folder of their own, and returns where they are. */
function files(t: TestContext, texts: Readonly<Record<string, string>>): string[] {
  const folder = temporaryFolder(t)
  return Object.entries(texts).map(([name, text]) => {
    const file = path.join(folder, name)
    writeFileSync(file, text)
    return file
  })
}
