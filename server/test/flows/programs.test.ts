/** Every command as a program of its own: other tests run most commands in a thread, all of them but the start of the program. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { COMMANDS } from '../../src/cli/commands.ts'
import { runProgram, temporaryFolder } from '../kit/running-vault.ts'

test('every command runs as a program', async (t) => {
  const home = temporaryFolder(t)
  const at = (name: string): string => join(home, name)
  writeFileSync(at('code.js'), 'module.exports = () => ({ raw: 1 })')
  const vault = ['--data-dir', at('vault')]
  let recipient = ''
  const runs: [command: string, args: () => string[], status: number, said: RegExp][] = [
    ['init', () => vault, 0, /api_key\s+\S+/],
    ['verify', () => vault, 0, /0 values verified|values/],
    ['audit verify', () => vault, 0, /: intact, events 1 to \d+/],
    ['doctor', () => vault, 0, /ok/i],
    ['keys recover', () => [...vault, '--tenant', 'default'], 0, /api_key\s+\S+/],
    ['keys create-root', () => ['--to', at('next.key')], 0, /root key/],
    ['keys rotate', () => [...vault, '--tenant', 'none'], 1, /none/],
    ['configuration protect', () => [...vault, '--reactor', 'x', '--key', 'K'], 1, /reactor/],
    ['callbacks list', () => vault, 1, /--api-key-file/],
    ['callbacks replay', () => [...vault, '--all'], 1, /--api-key-file/],
    ['backup key', () => ['--to', at('backup.key')], 0, /age1\w+/],
    ['backup', () => [...vault, '--to', at('backup'), '--recipient', recipient], 0, /backup/i],
    [
      'restore',
      () => [
        '--from',
        at('backup'),
        '--identity',
        at('backup.key'),
        '--data-dir',
        at('restored'),
        '--root-key-file',
        at('vault/root.key'),
      ],
      0,
      /restored/i,
    ],
    ['migrate', () => vault, 1, /--from/],
    ['reactor run', () => [at('code.js')], 0, /1/],
    ['serve', () => ['--port', 'none'], 1, /--port/],
    [
      'fields',
      () => vault,
      0,
      /<script type="module" src="\S+" integrity="sha384-\S+" crossorigin>/,
    ],
  ]
  assert.deepEqual(
    runs.map(([command]) => command).toSorted(),
    COMMANDS.map((it) => it.name).toSorted(),
  )
  for (const [command, args, status, said] of runs) {
    const run = await runProgram([...command.split(' '), ...args()])
    assert.equal(run.status, status, `${command}: ${run.out}${run.err}`)
    assert.match(status === 0 ? run.out : run.err, said, command)
    recipient = /age1\w+/.exec(run.out)?.[0] ?? recipient
  }
})
