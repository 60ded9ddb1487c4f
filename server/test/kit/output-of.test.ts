import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { nextOutput } from './output-of.ts'

const STDIO = ['pipe', 'pipe', 'ignore'] as const

test('nextOutput() resolves with one piece after the other', async () => {
  const child = spawn('/bin/sh', ['-c', 'echo 1; read -r _; echo 2'], { stdio: [...STDIO] })
  assert.equal(String(await nextOutput(child)), '1\n')
  child.stdin.end('\n')
  assert.equal(String(await nextOutput(child)), '2\n')
})

test('nextOutput() rejects when the program ends, and says how', async () => {
  const child = spawn('/bin/sh', ['-c', 'exit 7'], { stdio: [...STDIO] })
  await assert.rejects(nextOutput(child), /nothing more \(7\)/)
  const killed = spawn('/bin/sh', ['-c', 'kill -9 $$'], { stdio: [...STDIO] })
  await assert.rejects(nextOutput(killed), /nothing more \(SIGKILL\)/)
})

test('nextOutput() rejects when the program ended long before', async () => {
  const child = spawn('/bin/sh', ['-c', 'echo 1'], { stdio: [...STDIO] })
  await nextOutput(child)
  await once(child, 'close')
  await assert.rejects(nextOutput(child), /nothing more \(0\)/)
})

test('nextOutput() rejects when the program cannot be started', async () => {
  const child = spawn('/no/such/program', { stdio: [...STDIO] })
  await assert.rejects(nextOutput(child), /ENOENT/)
})
