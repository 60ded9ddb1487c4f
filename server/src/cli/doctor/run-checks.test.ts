import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { readConfig } from '../../config.ts'
import { CheckSkipped, failed, ok, warning, type Check } from './check.ts'
import { CHECKS } from './checks.ts'
import type { DoctorContext } from './context.ts'
import { renderJson, renderReport, statusOf } from './report.ts'
import { runChecks } from './run-checks.ts'

const CONFIG = readConfig({}, {})
const CONTEXT = {} as DoctorContext

function check(name: string, run: Check['run'], more: Partial<Check> = {}): Check {
  return { name, group: 'settings', run, ...more }
}

describe('runChecks()', () => {
  test('reports a check that throws, in one line, and runs the others', async () => {
    const results = await runChecks(
      [
        check('one', () => Promise.reject(new Error('lost\n  it', { cause: new Error('EIO') }))),
        check('other', async () => ok('fine.')),
      ],
      CONFIG,
      CONTEXT,
    )
    assert.deepEqual(
      results.map((it) => it.status),
      ['failed', 'ok'],
    )
    assert.equal(results[0]!.message, 'The check itself failed: lost it: EIO.')
  })

  test('gives up on a check that never ends', async () => {
    const never = check('one', () => new Promise(() => {}), { timeoutMs: 1 })
    const results = await runChecks([never, check('two', async () => ok('fine.'))], CONFIG, CONTEXT)
    assert.match(results[0]!.message, /did not finish within 0.001 s/)
    assert.equal(results[1]!.status, 'ok')
  })

  test('says why a check was skipped, and leaves out those that do not apply', async () => {
    const results = await runChecks(
      [
        check('one', () => Promise.reject(new CheckSkipped('nothing is there'))),
        check('two', async () => ok('fine.'), { applies: () => false }),
      ],
      CONFIG,
      CONTEXT,
    )
    assert.deepEqual(results, [
      {
        name: 'one',
        group: 'settings',
        status: 'skipped',
        message: 'Not checked: nothing is there.',
        remedy: null,
      },
    ])
  })
})

describe('the report', () => {
  const results = [
    { name: 'a', group: 'settings', ...ok('a is fine.') },
    { name: 'b', group: 'machine', ...warning('b is odd.', 'Look at b.') },
    { name: 'long-name', group: 'audit log', ...failed('c is broken.', 'Fix c.') },
  ] as const

  test('has the worst first, aligned, and a summary last', () => {
    assert.deepEqual(renderReport(results), [
      'failed   long-name  c is broken.',
      '                    To fix: Fix c.',
      'warning  b          b is odd.',
      '                    To fix: Look at b.',
      'ok       a          a is fine.',
      '',
      '1 failed, 1 warning, 1 ok',
    ])
  })

  test('wraps a remedy at 100 columns, aligned, and breaks no command in two', () => {
    const command = String.raw`run rm -r ${'/a/long/path '.repeat(8)}'/it'\''s a path, quoted'`
    const prose = 'Stop the service and look at everything that was left, '.repeat(3)
    const [, ...lines] = renderReport([
      {
        name: 'a',
        group: 'settings',
        ...failed('a is broken.', `${prose}${command}; then start.`),
      },
    ])
    const remedy = lines.slice(0, lines.indexOf(''))
    const [first, ...others] = remedy.map((it) => it.slice(12))
    assert.ok(remedy.every((it) => it.startsWith(' '.repeat(12))))
    assert.match(first!, /^To fix: Stop/)
    assert.ok(others.includes(`${command};`))
    for (const it of remedy) assert.ok(it.length <= 100 || it.includes(command), it)
    assert.equal([first, ...others].join(' '), `To fix: ${prose}${command}; then start.`)
  })

  test('shows no control characters, whatever a name or a message has in it', () => {
    const sly = { name: 'a', group: 'settings', ...failed('a\u001b[2Jb\nok', 'c\u0007') } as const
    const [line, remedy] = renderReport([sly])
    assert.match(line!, /a\ufffd\[2Jb\ufffdok$/)
    assert.match(remedy!, /c\ufffd$/)
    assert.ok(!renderJson([sly]).includes('\u001b'))
  })

  test('is one line of JSON with the worst status of all', () => {
    const { status, checks } = JSON.parse(renderJson(results)) as Record<string, unknown[]>
    assert.equal(status, 'failed')
    assert.deepEqual(checks!.at(-1), {
      name: 'a',
      group: 'settings',
      status: 'ok',
      message: 'a is fine.',
      remedy: null,
    })
    assert.equal(statusOf(results.slice(0, 2)), 'warning')
    assert.equal(statusOf(results.slice(0, 1)), 'ok')
  })
})

test('no two checks that apply together have the same name', () => {
  for (const url of [null, 'postgres://symbolon@localhost/symbolon']) {
    const config = { ...CONFIG, databaseUrl: url }
    const names = CHECKS.filter((it) => it.applies?.(config) !== false).map((it) => it.name)
    assert.deepEqual(names, [...new Set(names)])
    for (const it of names) assert.match(it, /^[a-z]+(?:-[a-z]+)*$/)
  }
})
