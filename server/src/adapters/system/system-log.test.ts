import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { KiB } from '../../base/limits.ts'
import { Sensitive } from '../../base/sensitive.ts'
import type { LogFields } from '../../ports/log.ts'
import { SystemLog, type SystemLogOptions } from './system-log.ts'

test('info() and warn() write one JSON object a line: level, time, event, then the fields', async (t) => {
  const { log, lines } = openLog(t)
  log.info('request finished', { status: 200, ms: 1.5, path: '/tokenize', user: null })
  log.warn('slow', { list: ['a', 1], nested: { deep: true }, absent: undefined })
  assert.deepEqual(
    (await lines()).map((line) => line.replace(/"time":"[^"]+"/, '"time":"T"')),
    [
      '{"level":"info","time":"T","event":"request finished","status":200,"ms":1.5,"path":"/tokenize","user":null}',
      '{"level":"warn","time":"T","event":"slow","list":["a",1],"nested":{"deep":true}}',
    ],
  )
})

test('warn() shows an error as error() does', async (t) => {
  const { log, parsed } = openLog(t)
  const error = new Error('why', { cause: new Error('deeper') })
  log.warn('event', { a: 1 }, error)
  log.error('event', error, { a: 1 })
  const [warned, failed] = await parsed()
  assert.deepEqual({ ...warned, level: 'error', time: failed?.time }, failed)
  assert.equal(warned?.level, 'warn')
  assert.match(JSON.stringify(warned), /why.*deeper/)
})

test('every line has its time as ISO 8601', async (t) => {
  const { log, parsed } = openLog(t)
  log.info('event')
  const { time } = (await parsed())[0]!
  assert.ok(typeof time === 'string')
  assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
})

test('a line break in a field cannot forge a line', async (t) => {
  const { log, lines } = openLog(t)
  log.info('event', { path: '/a\n{"level":"info","event":"forged"}' })
  assert.equal((await lines()).length, 1)
})

test('nothing below the level is written', async (t) => {
  const { log, parsed } = openLog(t, { level: 'error' })
  log.info('one')
  log.warn('two')
  log.error('three', new Error('why'))
  assert.deepEqual(
    (await parsed()).map((line) => line.event),
    ['three'],
  )
})

test('close() loses no line, and lines stay whole and in order', async (t) => {
  const { log, parsed } = openLog(t)
  for (let count = 0; count < 10_000; count += 1) log.info('event', { count })
  assert.deepEqual(
    (await parsed()).map((line) => line.count),
    Array.from({ length: 10_000 }, (_, count) => count),
  )
})

test('a line is rendered once nothing else is to be done, and not where it is logged', async (t) => {
  const { log, parsed } = openLog(t, { flushMs: 60_000 })
  const { fields, renderings } = countedField()
  log.info('event', fields)
  assert.equal(renderings(), 0)
  while (renderings() === 0) await setTimeout(1)
  assert.equal(renderings(), 1)
  assert.equal((await parsed())[0]?.['field'], 1)
})

test('at most 128 lines wait to be rendered, and at most 64 Ki characters', (t) => {
  for (const [lines, chars] of [
    [128, 100],
    [8, 8 * KiB],
    [1, 64 * KiB],
  ] as const) {
    const { log } = openLog(t, { flushMs: 60_000 })
    const { fields, renderings } = countedField()
    const long = { ...fields, text: ['x'.repeat(chars)] }
    for (let count = 1; count < lines; count++) log.info('event', long)
    assert.equal(renderings(), 0)
    log.info('event', long)
    assert.equal(renderings(), lines)
  }
})

test('long lines are all there where a process reads them', async (t) => {
  const { log, parsed, size } = openLog(t, { waitingCharsMax: 256 * KiB })
  const text = 'x'.repeat(60 * KiB)
  for (let count = 0; count < 20; count++) {
    log.info('event', { count, text })
    while (size() < (count + 1) * text.length) await setTimeout(1)
  }
  assert.equal((await parsed()).length, 20)
})

test('a line that cannot be rendered is counted, and costs no other and no process', async (t) => {
  const { log, parsed } = openLog(t)
  log.info('before')
  log.info('cannot', { field: 1n as never })
  log.info('after')
  assert.deepEqual(
    (await parsed()).map((line) => [line.event, line.lines]),
    [
      ['before', undefined],
      ['after', undefined],
      ['log lines dropped', 1],
    ],
  )
})

test('what cannot be rendered is reported, even if nothing else is', async (t) => {
  const { log, parsed } = openLog(t)
  log.info('cannot', { field: 1n as never })
  assert.deepEqual(
    (await parsed()).map((line) => [line.event, line.lines]),
    [['log lines dropped', 1]],
  )
})

test('no line is lost when the process ends in order, closed or not', () => {
  for (const end of ['process.exit(0)', 'await log.close()', '']) {
    assert.equal(speak(end).stdout.trim().split('\n').length, 1000, end)
  }
})

test('a log that cannot be written neither stops the process nor keeps it from ending', () => {
  const full = openSync('/dev/full', 'w')
  for (const end of ['process.exit(3)', 'await log.close(); process.exitCode = 3']) {
    const { status, stderr } = speak(end, full)
    assert.deepEqual({ status, stderr }, { status: 3, stderr: '' })
  }
  closeSync(full)
})

test('lines a slow reader leaves no room for are counted, and the count is logged', async (t) => {
  const { log, parsed } = openLog(t, { waitingCharsMax: 1000 })
  for (let count = 0; count < 100; count += 1) log.info('event', { count })
  const written = await parsed()
  const dropped = written.filter((line) => line.event === 'log lines dropped')
  const lines = dropped.reduce((sum, line) => sum + Number(line.lines), 0)
  assert.ok(lines > 0)
  assert.equal(written.length - dropped.length + lines, 100)
})

test('error() shows name, message, frames and causes, and nothing else an error carries', async (t) => {
  const { log, lines, parsed } = openLog(t)
  const cause = Object.assign(new TypeError('the cause'), { parameters: ['4242424242424242'] })
  const error = Object.assign(new Error('the error', { cause }), { key: 'secret-key' })
  log.error('failed', error, { trace: 'abc' })
  const line = (await parsed())[0]!
  const shown = line.error as LogFields
  assert.deepEqual(Object.keys(line), ['level', 'time', 'event', 'trace', 'error'])
  assert.deepEqual(Object.keys(shown), ['name', 'message', 'stack', 'causes'])
  assert.equal(shown.message, 'the error')
  assert.deepEqual(shown.causes, [{ name: 'TypeError', message: 'the cause' }])
  assert.match(String((shown.stack as string[])[0]), /^at .*system-log\.test\.ts/)
  assert.doesNotMatch((await lines()).join(), /4242424242424242|secret-key/)
})

test('error() shows what an AggregateError gathers, and survives an error that causes itself', async (t) => {
  const { log, parsed } = openLog(t)
  const error = new AggregateError([new Error('first'), new Error('second')], 'both')
  error.cause = error
  log.error('failed', error)
  const causes = ((await parsed())[0]!.error as LogFields).causes as LogFields[]
  assert.deepEqual(
    causes.slice(0, 3).map((cause) => cause.message),
    ['both', 'first', 'second'],
  )
  assert.equal(causes.length, 8)
})

test('error() never shows the input that a parser quotes, nor a thrown value', async (t) => {
  const { log, lines } = openLog(t)
  try {
    JSON.parse('canary\n    at canary')
  } catch (error) {
    log.error('failed', error)
    log.error('failed', new Error('outer', { cause: error }))
  }
  log.error('failed', 'canary')
  log.error('failed', { canary: 'canary' })
  assert.equal((await lines()).length, 4)
  assert.doesNotMatch((await lines()).join(), /canary/)
})

test('a Sensitive that strays into a field stays unread', async (t) => {
  const { log, lines } = openLog(t)
  log.info('event', { data: new Sensitive('canary') as unknown as LogFields })
  assert.match((await lines())[0]!, /"data":"\[sensitive\]"/)
})

/** Returns a field that counts how often it was rendered. */
function countedField(): { fields: LogFields; renderings: () => number } {
  let count = 0
  const field = { toJSON: () => ++count }
  return { fields: { field: field as never }, renderings: () => count }
}

function openLog(t: TestContext, options: Partial<SystemLogOptions> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'symbolon-log-'))
  const path = join(folder, 'log')
  const descriptor = openSync(path, 'a')
  const log = new SystemLog({ level: 'info', descriptor, ...options })
  t.after(async () => {
    await log.close()
    closeSync(descriptor)
    rmSync(folder, { recursive: true })
  })
  const lines = async (): Promise<string[]> => {
    await log.close()
    return readFileSync(path, 'utf8').trimEnd().split('\n')
  }
  const parsed = async () => (await lines()).map((line) => JSON.parse(line) as LogFields)
  return { log, lines, parsed, size: () => statSync(path).size }
}

/** Runs a program that logs a thousand lines to `stdout`, then ends as `end` says. */
function speak(end: string, stdout: 'pipe' | number = 'pipe') {
  const module = JSON.stringify(new URL('./system-log.ts', import.meta.url).href)
  const program = `
    import { SystemLog } from ${module}
    const log = new SystemLog({ level: 'info', descriptor: 1 })
    for (let count = 0; count < 1000; count += 1) log.info('event', { count })
    ${end}`
  return spawnSync(process.execPath, ['--input-type=module', '--eval', program], {
    encoding: 'utf8',
    stdio: ['ignore', stdout, 'pipe'],
  })
}
