import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'

const REPORTER = path.join(import.meta.dirname, 'reporter.ts')

test('the reporter lists slow files and why tests were skipped, before the summary', (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'symbolon-reporter-'))
  t.after(() => rmSync(folder, { recursive: true }))
  writeFileSync(
    path.join(folder, 'a.test.mjs'),
    `import { describe, test } from 'node:test'
     test('runs', () => {})
     test('is left out', { skip: 'bwrap is not installed' }, () => {})
     describe('a suite', { skip: 'bwrap is not installed' }, () => test('inside', () => {}))`,
  )
  const options = ['--test', `--test-reporter=${REPORTER}`, 'a.test.mjs']
  // Otherwise the inner run considers itself part of the outer one.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const { stdout, status } = spawnSync(process.execPath, options, {
    cwd: folder,
    env,
    encoding: 'utf8',
  })
  assert.equal(status, 0)
  const [notes] = /^Slowest files:\n +\d+\.\d s {2}\S*a\.test\.mjs\n(?=.*^ℹ tests)[^ℹ]*/ms.exec(
    stdout,
  )!
  const [, ...skipped] = notes.trimEnd().split(/^Skipped: bwrap is not installed\n/m)
  assert.deepEqual(skipped.join('').match(/: .+$/gm), [': is left out', ': a suite'])
})
