import assert from 'node:assert/strict'
import type { Reply } from './still-vault.ts'

/** Asserts that the service refused a request with this code. */
export function assertRefused(reply: Reply, status: number, code: string): void {
  assert.deepEqual([reply.status, reply.json()['code']], [status, code], reply.text)
}
