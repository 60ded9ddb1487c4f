import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { after, describe, test } from 'node:test'
import { pretendOldNode } from '../kit/old-node.ts'
import { installLauncher, killLaunchers } from '../launcher/run.ts'
import { nextOutput } from '../kit/output-of.ts'

const BIN = path.join(import.meta.dirname, '../../bin')
const BUNDLED = `node-${process.platform}-${process.arch}`

/** How long a program that outlives its launcher runs before it says so. */
const LEFT_MS = 30_000

/** Runs in place of the program. Prints how it was started, then does as its first argument says. */
const MAIN = `
  import { spawnSync } from 'node:child_process'
  import 'node:sqlite'
  const [what] = process.argv.slice(2)
  const ends = { SIGTERM: 7, SIGINT: 8, SIGHUP: 9 }
  const print = (text) => process.stdout.write(text + '\\n')
  if (['wait', 'stay', 'spin'].includes(what)) {
    for (const [signal, code] of Object.entries(ends)) {
      process.once(signal, () => {
        print(signal)
        process.exit(code)
      })
    }
  }
  if (what === 'wait') process.stdin.resume().once('end', () => process.exit(99))
  const started = {
    args: process.argv.slice(2),
    file: process.argv[1],
    version: process.versions.node,
    pid: process.pid,
  }
  // Names the descriptors that a child of the program inherits, and one with which it lists them.
  const list = () => spawnSync('ls', ['/dev/fd'], { stdio: ['ignore', 'pipe', 'ignore'], encoding: 'utf8' })
  const more = what === 'list' ? { inherited: list().stdout } : {}
  print(JSON.stringify({ ...started, ...more }))
  if (what === 'exit') process.exitCode = 5
  if (what === 'killed') process.kill(process.pid, 'SIGKILL')
  if (what === 'echo') process.stdin.pipe(process.stdout)
  if (what === 'stay') setTimeout(() => print('left behind'), ${LEFT_MS})
  if (what === 'spin') {
    for (const end = Date.now() + ${LEFT_MS}; Date.now() < end; );
    print('left behind')
  }
`

/** Only a Node that strips types gets past this. */
const TYPED = 'const typed: true = true; void typed'

/** A Node that takes until its launcher is gone to start. */
const SLOW_NODE = `#!/bin/sh
  if [ "$1" != --version ]; then
    echo starting
    while kill -0 $PPID 2>/dev/null; do sleep 0.01; done
  fi
  exec '${process.execPath}' "$@"
`

const folder = realpathSync(mkdtempSync(path.join(tmpdir(), 'symbolon-launcher-')))
after(() => rmSync(folder, { recursive: true }))

/** No real one: which would be found depends on the machine. `npm run test:launcher` takes one. */
const OLD = [
  { version: '22.20.0', replaces: true },
  { version: '24.14.9', replaces: false },
].map((it) => ({ ...it, command: pretendOldNode(folder, it) }))

/** Lays out an installed or checked-out package around the launcher and returns the launcher's path. */
function install(name: string, { main = 'src/main.ts', node = 'good' } = {}): string {
  const home = path.join(folder, name)
  const bundled = path.join(home, 'node_modules', BUNDLED)
  mkdirSync(path.join(home, path.dirname(main)), { recursive: true })
  cpSync(BIN, path.join(home, 'bin'), { recursive: true })
  writeFileSync(path.join(home, 'package.json'), '{"type":"module"}')
  writeFileSync(path.join(home, main), main.endsWith('.js') ? MAIN : MAIN + TYPED)
  if (node !== 'none') {
    mkdirSync(path.join(bundled, 'bin'), { recursive: true })
    writeFileSync(path.join(bundled, 'package.json'), '{}')
    const program = path.join(bundled, 'bin/node')
    if (node === 'good') symlinkSync(process.execPath, program)
    else writeFileSync(program, node === 'slow' ? SLOW_NODE : 'not a program', { mode: 0o755 })
  }
  return path.join(home, 'bin/symbolon.cjs')
}

/** Lets a program take as long as it needs to stop, rather than killing it after 300 ms. */
function waitForStop(launcher: string): void {
  const file = path.join(path.dirname(launcher), 'exit-with-launcher.cjs')
  const [limited, patient] = ['STOP_MS_MAX = 300\n', 'STOP_MS_MAX = 600_000\n']
  const code = readFileSync(file, 'utf8')
  assert.ok(code.includes(limited))
  writeFileSync(file, code.replace(limited, patient))
}

function launch(command: readonly string[], launcher: string, ...args: string[]): ChildProcess {
  return spawn(command[0]!, [...command.slice(1), launcher, ...args])
}

interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

async function ended(child: ChildProcess): Promise<Ended> {
  const [[code, signal], stdout, stderr] = await Promise.all([
    once(child, 'exit'),
    text(child.stdout!),
    text(child.stderr!),
  ])
  return { code, signal, stdout, stderr }
}

interface Started {
  readonly args: string[]
  /** The file that Node was started with. */
  readonly file: string
  readonly version: string
  readonly pid: number
  readonly inherited?: string
}

const started = (line: string): Started => JSON.parse(line) as Started

/**
 * Kills the launcher once the program writes; returns everything written, when no process can write any more.
 *
 * The program has no pipe from here as its input: that would end with the launcher.
 */
async function killLauncher(command: readonly string[], ...args: string[]): Promise<string> {
  const [program, ...words] = [...command, ...args]
  const child = spawn(program!, words, { stdio: ['ignore', 'pipe', 'inherit'] })
  let written = ''
  child.stdout.on('data', (chunk: Buffer) => (written += chunk.toString()))
  await nextOutput(child)
  child.kill('SIGKILL')
  await once(child.stdout, 'close')
  assert.doesNotMatch(written, /left behind/)
  return written
}

describe('symbolon, on a recent Node', () => {
  test('runs src/main.ts in a checkout, with its arguments and without a warning', async () => {
    const launcher = install('checkout')
    const child = launch([process.execPath], launcher, 'exit', '--port', '0')
    const { code, stdout, stderr } = await ended(child)
    const { args, file, pid } = started(stdout)
    assert.deepEqual(args, ['exit', '--port', '0'])
    // There is no launcher left to exit with.
    assert.deepEqual([file, pid], [launcher, child.pid])
    assert.equal(stderr, '')
    assert.equal(code, 5)
  })

  test('runs dist/main.js in a published package', async () => {
    const launcher = install('published', { main: 'dist/main.js', node: 'none' })
    const { code, stdout, stderr } = await ended(launch([process.execPath], launcher, 'exit'))
    assert.deepEqual(started(stdout).args, ['exit'])
    assert.equal(stderr, '')
    assert.equal(code, 5)
  })

  test('says why when the program cannot be loaded, and fails', async () => {
    const launcher = install('empty', { main: 'dist/other.js' })
    const { code, stderr } = await ended(launch([process.execPath], launcher))
    assert.match(stderr, /ERR_MODULE_NOT_FOUND/)
    assert.equal(code, 1)
  })
})

for (const { version, command, replaces } of OLD) {
  const can = replaces ? 'can' : 'cannot'
  describe(`symbolon, on a pretended Node ${version}, which ${can} replace its own process`, () => {
    const launcher = install(`old-${version}`)

    test('goes on with the bundled Node, the same arguments, and no warning', async () => {
      const child = launch(command, launcher, 'exit', 'with a space', '--x=y')
      const { code, stdout, stderr } = await ended(child)
      const { args, file, version, pid } = started(stdout)
      assert.deepEqual(args, ['exit', 'with a space', '--x=y'])
      assert.equal(version, process.versions.node)
      assert.equal(pid === child.pid, replaces)
      assert.equal(file === launcher, replaces)
      assert.equal(stderr, '')
      assert.equal(code, 5)
    })

    test('hands its standard streams on', async () => {
      const child = launch(command, launcher, 'echo')
      child.stdin!.end('what came in')
      assert.match((await ended(child)).stdout, /what came in$/)
    })

    for (const [signal, code] of [
      ['SIGTERM', 7],
      ['SIGINT', 8],
      ['SIGHUP', 9],
    ] as const) {
      test(`lets ${signal} reach the program and ends with its exit code`, async () => {
        const child = launch(command, launcher, 'wait')
        await once(child.stdout!, 'readable')
        child.kill(signal)
        const [ended] = await once(child, 'exit')
        // Should the signal not have come through, this ends the program nevertheless.
        child.stdin!.end()
        assert.equal(ended, code)
      })
    }

    test('dies of the signal that the program died of', async () => {
      assert.equal((await ended(launch(command, launcher, 'killed'))).signal, 'SIGKILL')
    })

    test('asks the program to stop when the launcher is killed', async () => {
      const patient = install(`old-${version}-patient`)
      waitForStop(patient)
      const written = await killLauncher(command, patient, 'stay')
      // A launcher that was replaced is the program itself, and is killed outright.
      assert.equal(written.includes('SIGTERM'), !replaces)
    })

    test('kills a program that is too busy to stop when the launcher is killed', async () => {
      await killLauncher(command, launcher, 'spin')
    })

    test('ends a program that is still starting when the launcher is killed', async () => {
      const slow = install(`old-${version}-slow`, { node: 'slow' })
      await killLauncher(command, slow, 'stay')
    })

    test('lets no child of the program inherit the channel to the launcher', async () => {
      const bare = await ended(launch([process.execPath], launcher, 'list'))
      const { stdout } = await ended(launch(command, launcher, 'list'))
      assert.equal(started(stdout).inherited, started(bare.stdout).inherited)
    })

    for (const node of ['none', 'broken']) {
      test(`says in one sentence what to install when the bundled Node is ${node}`, async () => {
        const bare = install(`old-${version}-${node}`, { node })
        const { code, stdout, stderr } = await ended(launch(command, bare, 'exit'))
        assert.match(
          stderr,
          /^Symbolon needs Node\.js 24\.15 or later, and this is [\d.]+: [^\n]+\.\n$/,
        )
        assert.equal(stdout, '')
        assert.equal(code, 1)
      })
    }
  })
}

describe('a vault whose launcher is killed, on an old Node that cannot replace its own process', () => {
  const { command } = OLD.find((it) => !it.replaces)!

  test('frees its port and its data folder, idle and with a request in flight', async () => {
    const kills = await killLaunchers({
      dataFolder: path.join(folder, 'data'),
      command: [...command, installLauncher(path.join(folder, 'watched'), null)],
      kills: 2,
      waitMs: LEFT_MS,
    })
    for (const it of kills) assert.ok(Math.max(it.portMs, it.folderMs) < Infinity, 'never free')
    assert.deepEqual(
      kills.map((it) => it.inFlight),
      [false, true],
    )
  })

  // Otherwise the harness is blind, and the test above proves nothing.
  test('is reported as never free when it does not watch its launcher', async () => {
    const kills = await killLaunchers({
      dataFolder: path.join(folder, 'data-unwatched'),
      command: [...command, installLauncher(path.join(folder, 'unwatched'), 'unwatched')],
      kills: 1,
      waitMs: 1_000,
    })
    assert.deepEqual(kills, [{ inFlight: false, portMs: Infinity, folderMs: Infinity }])
  })
})
