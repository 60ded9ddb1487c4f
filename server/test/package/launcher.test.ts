import assert from 'node:assert/strict'
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { after, describe, test } from 'node:test'

const LAUNCHER = path.join(import.meta.dirname, '../../bin/symbolon.cjs')
const FLAGS = path.join(import.meta.dirname, '../../bin/node-flags.json')
const BUNDLED = `node-${process.platform}-${process.arch}`

/** What stands in for the program: it tells how it was started, then does as its first argument says. */
const MAIN = `
  import 'node:sqlite'
  const [what] = process.argv.slice(2)
  const ends = { SIGTERM: 7, SIGINT: 8, SIGHUP: 9 }
  if (what === 'wait') {
    for (const [signal, code] of Object.entries(ends)) process.once(signal, () => process.exit(code))
    process.stdin.resume().once('end', () => process.exit(99))
  }
  process.stdout.write(
    JSON.stringify({ args: process.argv.slice(2), version: process.versions.node, pid: process.pid }) + '\\n',
  )
  if (what === 'exit') process.exitCode = 5
  if (what === 'killed') process.kill(process.pid, 'SIGKILL')
  if (what === 'echo') process.stdin.pipe(process.stdout)
`

/** Only a Node that strips types gets past this. */
const TYPED = 'const typed: true = true; void typed'

/** Pretends to be an old Node, which may or may not be able to replace its own process. */
function stub(version: string, canReplaceItself: boolean): string {
  return `
    const versions = Object.assign({}, process.versions, { node: '${version}' })
    Object.defineProperty(process, 'versions', { value: versions })
    ${canReplaceItself ? '' : 'process.execve = undefined'}
  `
}

const folder = mkdtempSync(path.join(tmpdir(), 'symbolon-launcher-'))
after(() => rmSync(folder, { recursive: true }))

writeFileSync(path.join(folder, 'stub-22.cjs'), stub('22.20.0', true))
writeFileSync(path.join(folder, 'stub-24.cjs'), stub('24.14.9', false))

/** Old Nodes as command lines: two pretended ones, and a real one where the machine has it. */
const OLD: { name: string; command: string[]; replaces: boolean }[] = [
  {
    name: 'a pretended 22.20, which can replace its process',
    command: [process.execPath, '--require', path.join(folder, 'stub-22.cjs')],
    replaces: true,
  },
  {
    name: 'a pretended 24.14, which cannot',
    command: [process.execPath, '--require', path.join(folder, 'stub-24.cjs')],
    replaces: false,
  },
]
for (const command of ['/usr/bin/node', '/usr/local/bin/node']) {
  if (!existsSync(command)) continue
  const asked = '[process.versions.node, typeof process.execve].join()'
  const [version, execve] = spawnSync(command, ['-p', asked], { encoding: 'utf8' })
    .stdout.trim()
    .split(',')
  const [major, minor] = version!.split('.').map(Number)
  if (major! < 24 || (major === 24 && minor! < 15)) {
    const replaces = execve === 'function'
    OLD.push({ name: `the real ${version} of this machine`, command: [command], replaces })
  }
}

/** Lays out an installed or checked-out package around the launcher and returns the launcher's path. */
function install(name: string, { main = 'src/main.ts', node = 'good' } = {}): string {
  const home = path.join(folder, name)
  const bundled = path.join(home, 'node_modules', BUNDLED)
  for (const it of ['bin', path.dirname(main)]) mkdirSync(path.join(home, it), { recursive: true })
  copyFileSync(LAUNCHER, path.join(home, 'bin/symbolon.cjs'))
  copyFileSync(FLAGS, path.join(home, 'bin/node-flags.json'))
  writeFileSync(path.join(home, 'package.json'), '{"type":"module"}')
  writeFileSync(path.join(home, main), main.endsWith('.js') ? MAIN : MAIN + TYPED)
  if (node !== 'none') {
    mkdirSync(path.join(bundled, 'bin'), { recursive: true })
    writeFileSync(path.join(bundled, 'package.json'), '{}')
    if (node === 'good') symlinkSync(process.execPath, path.join(bundled, 'bin/node'))
    else writeFileSync(path.join(bundled, 'bin/node'), 'not a program', { mode: 0o755 })
  }
  return path.join(home, 'bin/symbolon.cjs')
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

const started = (line: string) =>
  JSON.parse(line) as { args: string[]; version: string; pid: number }

describe('symbolon, on a recent Node', () => {
  test('runs src/main.ts in a checkout, with its arguments and without a warning', async () => {
    const child = launch([process.execPath], install('checkout'), 'exit', '--port', '0')
    const { code, stdout, stderr } = await ended(child)
    assert.deepEqual(started(stdout).args, ['exit', '--port', '0'])
    assert.equal(started(stdout).pid, child.pid)
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

for (const [index, { name, command, replaces }] of OLD.entries()) {
  describe(`symbolon, on an old Node: ${name}`, () => {
    const launcher = install(`old-${index}`)

    test('goes on with the bundled Node, the same arguments, and no warning', async () => {
      const child = launch(command, launcher, 'exit', 'with a space', '--x=y')
      const { code, stdout, stderr } = await ended(child)
      assert.deepEqual(started(stdout).args, ['exit', 'with a space', '--x=y'])
      assert.equal(started(stdout).version, process.versions.node)
      assert.equal(started(stdout).pid === child.pid, replaces)
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

    for (const node of ['none', 'broken']) {
      test(`says in one sentence what to install when the bundled Node is ${node}`, async () => {
        const bare = install(`old-${index}-${node}`, { node })
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
