import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { lacksPrograms } from '../../test/kit/programs.ts'

const READS = `
  const { readAuthorities } = await import(${JSON.stringify(new URL('./read-authorities.ts', import.meta.url))})
  readAuthorities(process.argv[1])
`

const skip = lacksPrograms('mkfifo')

test(
  'readAuthorities() refuses what is no file, and waits for no process to write into a pipe',
  { skip },
  (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'symbolon-test-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const pipe = join(folder, 'pipe')
    assert.equal(spawnSync('mkfifo', [pipe]).status, 0)
    for (const it of [pipe, folder, '/dev/zero']) {
      const args = ['--input-type=module', '-e', READS, it]
      // In a separate process, because one blocked on a pipe could not time out.
      const { stderr } = spawnSync(process.execPath, args, {
        timeout: 600_000,
        killSignal: 'SIGKILL',
        encoding: 'utf8',
      })
      assert.match(stderr, /SYMBOLON_EXTRA_CA_FILE is '.*', but must be a PEM file .*regular file/)
    }
  },
)
