import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { PACKAGES } from './programs.ts'

/** In every Debian, or installed with Node. */
const ALWAYS_THERE = ['mkfifo', 'npm', 'prlimit']

test('the CI script installs every program that a test may be skipped for', () => {
  const script = readFileSync(new URL('../../../.ci/run', import.meta.url), 'utf8')
  const [, list = ''] = /^declare -A packages=\((.*)\)$/m.exec(script) ?? []
  const installed = Array.from(list.matchAll(/\[([\w-]+)\]=(\S+)/g), ([, name, from]) => [
    name,
    from,
  ])
  const needed = Object.entries(PACKAGES).filter(([name]) => !ALWAYS_THERE.includes(name))
  assert.deepEqual(Object.fromEntries(installed), Object.fromEntries(needed))
})
