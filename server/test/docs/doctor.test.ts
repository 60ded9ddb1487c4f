import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { CHECK_GROUPS } from '../../src/cli/doctor/check.ts'
import { CHECKS } from '../../src/cli/doctor/checks.ts'
import { runProgram, temporaryFolder } from '../kit/running-vault.ts'
import { readDocument } from '../tidy/docs.ts'

const DOCUMENT = readDocument('docs/operate/doctor.md', 'the checks of symbolon doctor')

describe('docs/operate/doctor.md', () => {
  test('has a row for each check, in its group', () => {
    const rows = DOCUMENT.matchAll(/^\| `([a-z-]+)` \| ([a-z ]+) \|/gm)
    const written = Array.from(rows, ([, name, group]) => [name!, group!] as const).filter(
      ([, group]) => CHECK_GROUPS.some((it) => it === group),
    )
    const checks = CHECKS.map((it) => [it.name, it.group] as const)
    assert.deepEqual(Object.fromEntries(written), Object.fromEntries(checks))
  })

  test('shows the output for a new vault', async (t) => {
    const folder = temporaryFolder(t)
    assert.equal((await runProgram(['init'], {}, folder)).status, 0)
    const { out } = await runProgram(['doctor'], {}, folder)
    const [, shown] = /```\n(warning [^]*?)```/.exec(DOCUMENT)!
    // The width of the first columns depends on the longest name.
    const lines = new Set(out.split('\n').map((it) => it.replaceAll(/ {2,}/g, ' ')))
    for (const it of shown!.trimEnd().split('\n')) {
      assert.ok(lines.has(it.replaceAll(/ {2,}/g, ' ')), `${it}\nis not in\n${out}`)
    }
  })
})
