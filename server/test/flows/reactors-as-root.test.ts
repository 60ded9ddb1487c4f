/** A service of root that cannot give reactors a user of their own says so, wherever operators look; another says which user they have. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { CheckResult } from '../../src/cli/doctor/run-checks.ts'
import { noBubblewrap } from '../kit/bubblewrap.ts'
import { bareEnvironment } from '../kit/environment.ts'
import { lacksUserNamespaces } from '../kit/programs.ts'
import { temporaryFolder } from '../kit/running-vault.ts'

const PROGRAM = fileURLToPath(new URL('../../bin/symbolon.cjs', import.meta.url))

/** Makes a program root, of a namespace of its own, without the right to change its user. */
const POWERLESS = ['unshare', '-r', 'setpriv', '--bounding-set', '-setuid,-setgid']

const OWN = process.getuid!() === 0 ? 'own users' : "the service's user"
const SAID_OF_OWN = process.getuid!() === 0 ? /a user of its own/ : /as the service's user/

const WHO = 'module.exports = () => process.getuid()'
const LEVELS = { jail: false, hardened: noBubblewrap() } as const

for (const [level, noLevel] of Object.entries(LEVELS)) {
  describe(`at the level ${level}, if reactors run as root,`, () => {
    const skip = noLevel || lacksUserNamespaces()

    test('the log warns, and readiness names the user', { skip }, async (t) => {
      const served = await serve(t, level, POWERLESS)
      assert.equal(served.reactors, 'root')
      assert.match(served.log, /"event":"reactors_as_root","reason":"reactors run as root"/)
    })

    test('symbolon doctor warns, and says what to change', { skip }, async (t) => {
      const { status, message, remedy } = await doctor(t, level, POWERLESS)
      assert.equal(status, 'warning', message)
      assert.match(message, /reactors run as root/)
      assert.match(remedy!, /as an ordinary user, or give it the capabilities SETUID and SETGID/)
    })

    test('symbolon reactor run says so, and it is true', { skip }, async (t) => {
      const { out, err } = await reactorRun(t, level, POWERLESS)
      assert.equal(out.trim(), '0')
      assert.match(err, /reactors run as root$/m)
    })
  })

  describe(`at the level ${level}, if they do not,`, { skip: noLevel }, () => {
    test('nothing warns, and everything names the user', async (t) => {
      const served = await serve(t, level)
      assert.equal(served.reactors, OWN)
      assert.doesNotMatch(served.log, /reactors_as_root/)
      const { status, message } = await doctor(t, level)
      assert.equal(status, 'ok', message)
      assert.match(message, SAID_OF_OWN)
      const { out, err } = await reactorRun(t, level)
      assert.match(err, SAID_OF_OWN)
      if (process.getuid!() === 0) assert.ok(Number(out) >= 0x70000000, `it runs as ${out}`)
      else assert.equal(Number(out), process.getuid!())
    })
  })
}

/** Starts a service and stops it; returns the user that reactors have, as readiness has it, and the log. */
async function serve(
  t: TestContext,
  level: string,
  prefix: readonly string[] = [],
): Promise<{ reactors: string; log: string }> {
  const child = start(t, level, prefix, ['serve'])
  let log = ''
  child.stderr.on('data', (it) => (log += it))
  const ready = Promise.withResolvers<string>()
  child.stdout.on('data', (it) => {
    log += it
    const url = /is ready at (http:\S+)/.exec(log)?.[1]
    if (url !== undefined) ready.resolve(url)
  })
  const ended = once(child, 'close').then(() => ready.reject(new Error(log)))
  const reply = await fetch(`${await ready.promise}/health/ready`)
  const { checks } = (await reply.json()) as { checks: { reactors: string } }
  child.kill()
  await ended
  return { reactors: checks.reactors, log }
}

async function doctor(t: TestContext, level: string, prefix: readonly string[] = []) {
  const { out } = await finished(start(t, level, prefix, ['doctor', '--json']))
  const { checks } = JSON.parse(out) as { checks: CheckResult[] }
  return checks.find((it) => it.name === 'reactor-sandbox')!
}

async function reactorRun(t: TestContext, level: string, prefix: readonly string[] = []) {
  const file = path.join(temporaryFolder(t), 'who.js')
  writeFileSync(file, WHO)
  return await finished(start(t, level, prefix, ['reactor', 'run', file, '--level', level]))
}

function start(t: TestContext, level: string, prefix: readonly string[], args: readonly string[]) {
  const [program, ...rest] = [...prefix, process.execPath, PROGRAM, ...args]
  return spawn(program!, rest, {
    env: {
      ...bareEnvironment(),
      SYMBOLON_DATA_DIR: path.join(temporaryFolder(t), 'data'),
      SYMBOLON_PORT: '0',
      SYMBOLON_REACTOR_LEVEL: level,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

async function finished(child: ReturnType<typeof start>): Promise<{ out: string; err: string }> {
  let [out, err] = ['', '']
  child.stdout.on('data', (it) => (out += it))
  child.stderr.on('data', (it) => (err += it))
  await once(child, 'close')
  return { out, err }
}
