/** Tests what every level promises, whatever its walls are made of; at one level, what does not depend on them. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, realpathSync } from 'node:fs'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { noBubblewrap } from '../../../test/kit/bubblewrap.ts'
import { installModules } from '../../../test/kit/installed-modules.ts'
import { readableFolder } from '../../../test/kit/readable-installation.ts'
import { Sensitive } from '../../base/sensitive.ts'
import { REACTOR_LEVELS, type ReactorOutcome, type SandboxRun } from '../../ports/reactor-runner.ts'
import { JailRunner, type Took } from './jail-runner.ts'
import { NO_WAY } from './no-way.ts'

/** Longer than any run here takes on the slowest machine. */
const TIMEOUT_MS = 600_000
const LOOK_MS = 5

const ASKED = `
  const os = require('os'), dns = require('dns')
  const tried = (name) => { try { return typeof require(name) } catch (error) { return error.code } }
  const told = (it) => it.then(() => 'sent', (error) => error.cause?.message ?? error.message)
  const answers = {
    packages: () => ['lodash', 'axios', 'pdf-lib', 'undici', 'fastify', 'yup', 'fs', 'child_process'].map(tried),
    machine: () => ({
      memory: Object.values(process.memoryUsage()).concat(process.memoryUsage.rss()).every((it) => it > 0),
      times: [process.cpuUsage().user, process.hrtime()[0], process.uptime(), process.resourceUsage().maxRSS].every((it) => it > 0),
      cpus: os.cpus().length > 0 && os.cpus()[0].times.user >= 0,
      user: typeof os.userInfo().username, interfaces: typeof os.networkInterfaces(),
      priority: typeof os.getPriority(), umask: process.umask() <= 0o777, cwd: process.cwd(),
    }),
    names: async () => [
      await new Promise((resolve) => dns.lookup('a.test', (error) => resolve(error.message))),
      await dns.promises.resolve4('a.test').catch((error) => error.message),
    ],
    destinations: () => Promise.all([
      told(fetch('https://destination.test')),
      told(require('axios').get('http://127.0.0.1:1')),
    ]),
  }
  module.exports = ({ args }) => answers[args]()`

/** Each test uses another reactor. */
let runs = 0

for (const level of REACTOR_LEVELS) {
  const skip = level === 'hardened' && noBubblewrap()
  describe(`a guest at the level ${level}`, { skip }, () => {
    const took: Took[] = []
    const heard: string[] = []
    let runner: JailRunner
    before(async () => {
      const measured = (_: SandboxRun, it: Took): unknown => took.push(it)
      const output = (_: SandboxRun, text: string): unknown => heard.push(text)
      const settings = {
        authorities: [],
        waysOut: NO_WAY,
        measured,
        output,
        wallsTestMsMax: TIMEOUT_MS,
      }
      runner = await JailRunner.open({ ...settings, level, packages: ['yup', 'undici'] })
    })
    after(() => runner.close())
    const resultOf = async (given: SandboxRun): Promise<unknown> =>
      shownResult(await runner.run(given))

    test('runs, and the walls that it promises stand', async () => {
      assert.deepEqual([runner.level, runner.flaw], [level, null])
      assert.deepEqual(
        await resultOf(runOf('module.exports = ({ args }) => ({ raw: args })', '{"a":1}')),
        { raw: { a: 1 } },
      )
      assert.ok(took.at(-1)!.ms > 0 && took.at(-1)!.privateBytes > 1e6)
    })

    /** One reactor with a function for each of the tests below that only ask. */
    const asked = runOf(ASKED)
    const answer = (name: string): Promise<unknown> =>
      resultOf({ ...asked, args: new Sensitive(JSON.stringify(name)) })

    test('may require what comes along, what the operator adds, and nothing else', async () => {
      assert.deepEqual(runner.missing, ['yup'])
      const found = ['function', 'function', 'object', 'object']
      const none = Array<string>(4).fill('MODULE_NOT_FOUND')
      assert.deepEqual(await answer('packages'), [...found, ...none])
    })

    test('loads bundled packages from a folder of their own, names the missing ones, and runs without any', async (t) => {
      const folder = realpathSync(readableFolder(t))
      installModules(folder, ['uuid'])
      const anchor = path.join(folder, 'index.js')
      const settings = { authorities: [], waysOut: NO_WAY, wallsTestMsMax: TIMEOUT_MS }
      const partly = await JailRunner.open({ ...settings, level, packages: [], anchor })
      try {
        assert.deepEqual(partly.missing, [])
        const code = `module.exports = () => {
          try { return [require('uuid'), require('axios')] }
          catch (error) { return [require('uuid'), error.code, error.message] }
        }`
        const [found, ...failure] = shownResult(await partly.run(runOf(code))) as [
          { made: string; stack: string },
          ...string[],
        ]
        assert.equal(found.made, 'uuid')
        assert.ok(!found.stack.includes(folder), found.stack)
        assert.deepEqual(failure, [
          'MODULE_NOT_FOUND',
          "Cannot find module 'axios': it comes with @symbolon/reactor-modules, which the operator has not installed beside the vault",
        ])
        assert.equal(shownResult(await partly.run(runOf('module.exports = () => 1'))), 1)
      } finally {
        await partly.close()
      }
    })

    test('does not run between its runs, and goes on at the next', async () => {
      const counting = runOf('let runs = 0; module.exports = () => ++runs')
      const before = await resultOf(counting)
      const settled = (): boolean =>
        runner.processes.running === 0 && stoppedBelow(process.pid) === runner.processes.warm
      while (!settled()) await sleep(LOOK_MS)
      const then = performance.now()
      while (performance.now() < then + 50) {
        assert.equal(stoppedBelow(process.pid), runner.processes.warm)
        await sleep(LOOK_MS)
      }
      assert.deepEqual([before, await resultOf(counting)], [1, 2])
    })

    test('is ended when its time is over, or its memory used up, and takes no other run along', async () => {
      const slow = { ...runOf('module.exports = () => { for (;;); }'), timeoutMs: 300 }
      assert.equal((await runner.run(slow)).kind, 'timed-out')
      const bombs = ['new Array(1e5).fill(1.5)', 'Buffer.alloc(1e7, 1)']
      for (const it of bombs) {
        const bomb = runOf(
          `module.exports = () => { const all = []; for (;;) try { all.push(${it}) } catch {} }`,
        )
        assert.equal((await runner.run(bomb)).kind, 'out-of-memory')
      }
      assert.equal((await runner.run(runOf('module.exports = () => process.abort()'))).kind, 'died')
      assert.equal(await resultOf(runOf('module.exports = () => 1')), 1)
    })

    test('answers questions of code about its process and machine', async () => {
      assert.deepEqual(await answer('machine'), {
        memory: true,
        times: true,
        cpus: true,
        user: 'string',
        interfaces: 'object',
        priority: 'number',
        umask: true,
        cwd: '/',
      })
    })

    test('refuses to look up names, and says why', async () => {
      const reason = 'Reactors cannot look up addresses: connect to the host by its name: a.test'
      assert.deepEqual(await answer('names'), [reason, reason])
    })

    test('finds no destination but by the egress gateway', async () => {
      const refused = 'Refused by the rule on unlisted'
      assert.deepEqual(await answer('destinations'), [refused, refused])
    })

    if (level !== 'jail') return

    test('captures the output of the console, stdout and stderr', async () => {
      heard.length = 0
      const code = `module.exports = () => {
        const other = require('console')
        console.table([{ a: 1 }]); console.dir({ a: 1 }); console.trace('here'); console.group('in')
        console.info('a'); console.groupEnd(); console.count('n'); console.count('n'); console.time('t')
        console.timeEnd('t'); console.assert(false, 'no'); console.debug('b'); other.log('c')
        process.stdout.write('d\\n'); process.stderr.write('e\\n')
      }`
      // Twice, because counters last for one run.
      for (const it of [runOf(code), runOf(code)]) await resultOf(it)
      const said = heard.join('')
      for (const it of ['│ (index) │', '{ a: 1 }', 'Trace: here', '  a\n', 'n: 2\n', 't: ']) {
        assert.equal(said.split(it).length, 3, it)
      }
      for (const it of ['Assertion failed: no\n', 'b\nc\nd\ne\n']) assert.ok(said.includes(it), it)
    })

    test('sends bytes that it throws as a response', async () => {
      const code = `const { CustomHttpResponseError } = require('@basis-theory/basis-theory-reactor-formulas-sdk-js')
        module.exports = () => { throw new CustomHttpResponseError({ status: 200, body: Buffer.from([0, 255, 10]) }) }`
      const outcome = await runner.run(runOf(code))
      assert.deepEqual(outcome.kind === 'threw' && [outcome.error.body, outcome.error.bytes], [
        null,
        'AP8K',
      ])
      const large = await runner.run(
        runOf(code.replace('Buffer.from([0, 255, 10])', 'new Uint8Array(5e4)')),
      )
      assert.match(
        JSON.stringify(large.kind === 'threw' && large.error.message),
        /^"The custom response is larger/,
      )
    })
  })
}

test('JailRunner.open() says what is missing where there is no bubblewrap, and runs nothing', async () => {
  const runner = await JailRunner.open({
    level: 'hardened',
    packages: [],
    authorities: [],
    waysOut: NO_WAY,
    bubblewrap: '/nowhere/bwrap',
  })
  assert.equal(runner.level, null)
  assert.match(runner.flaw ?? '', /^bubblewrap is missing.*install the package bubblewrap/)
  await assert.rejects(runner.run(runOf('module.exports = () => 1')), { name: 'RunnerUnavailable' })
  await runner.close()
})

function runOf(code: string, args = '{}'): SandboxRun {
  return {
    tenantId: 'tenant-a',
    reactorId: `reactor-${++runs}`,
    version: '1',
    code,
    args: new Sensitive(args),
    configuration: new Sensitive('{}'),
    apiKey: null,
    destinations: null,
    timeoutMs: TIMEOUT_MS,
  }
}

/** Counts the stopped processes below `id`. */
function stoppedBelow(id: number): number {
  const ids = readdirSync('/proc').filter((it) => /^\d+$/.test(it))
  const all = ids.map(statOf).filter((it) => it !== null)
  const below = (parent: number): number => {
    const children = all.filter((it) => it.parent === parent)
    return children.reduce((sum, it) => sum + Number(it.state === 'T') + below(it.id), 0)
  }
  return below(id)
}

/** Reads /proc/pid/stat, proc_pid_stat(5); returns null once the process has ended. */
function statOf(id: string): { id: number; state: string; parent: number } | null {
  try {
    const [state = '', parent] = readFileSync(`/proc/${id}/stat`, 'latin1')
      .split(') ')
      .at(-1)!
      .split(' ')
    return { id: Number(id), state, parent: Number(parent) }
  } catch {
    return null
  }
}

function shownResult(outcome: ReactorOutcome): unknown {
  assert.equal(outcome.kind, 'returned', JSON.stringify(outcome))
  return outcome.kind === 'returned' ? JSON.parse(String(outcome.result.reveal())) : null
}
