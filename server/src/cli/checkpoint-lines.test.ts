import assert from 'node:assert/strict'
import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../../test/kit/running-vault.ts'
import { CHECKPOINT_LINE_CHARS_MAX, KiB } from '../base/limits.ts'
import { openCheckpointLines } from './checkpoint-lines.ts'

/** Writes each text to a file of its own, opens them, calls `meanwhile` with their names, and returns the lines. */
async function linesOf(
  t: Parameters<typeof temporaryFolder>[0],
  texts: readonly string[],
  meanwhile: (files: readonly string[]) => void = () => {},
): Promise<string[]> {
  const folder = temporaryFolder(t)
  const files = texts.map((text, n) => {
    const file = join(folder, `${n}`)
    writeFileSync(file, text)
    return file
  })
  const { read, close } = await openCheckpointLines(files)
  try {
    meanwhile(files)
    const lines: string[] = []
    for await (const it of read()) lines.push(it)
    return lines
  } finally {
    await close()
  }
}

test('openCheckpointLines() reads the lines of each file, in order, across the borders of chunks', async (t) => {
  const long = 'é'.repeat(50 * KiB)
  const lines = Array.from({ length: 20 }, (_, n) => `${n}${long}`)
  assert.deepEqual(await linesOf(t, ['a\n\nb\n', `${lines.join('\n')}\n`, '']), [
    'a',
    '',
    'b',
    ...lines,
  ])
})

test('openCheckpointLines() passes over what was written after it was called', async (t) => {
  const lines = await linesOf(t, ['a\n', 'b\n'], (files) => {
    for (const it of files) appendFileSync(it, 'later\n')
  })
  assert.deepEqual(lines, ['a', 'b'])
})

test('openCheckpointLines() leaves out a last line that was cut off, but not one that only lacks its line break', async (t) => {
  assert.deepEqual(await linesOf(t, ['a\n{"b":', '{"c":1}', 'd']), ['a', '{"c":1}'])
})

test('openCheckpointLines() leaves out lines that are too long', async (t) => {
  const longest = 'x'.repeat(CHECKPOINT_LINE_CHARS_MAX)
  for (const [count, shown] of [
    [0, [longest]],
    [1, []],
    [1024 * KiB, []],
  ] as const) {
    const lines = await linesOf(t, [`a\n${longest}${'y'.repeat(count)}\nb\n`])
    assert.deepEqual(lines, ['a', ...shown, 'b'])
  }
})
