import assert from 'node:assert/strict'
import { SEED } from './seed.ts'

/**
 * Asserts that a harness detected a deliberately broken build: any fault will do. Which of several faults shows first
 * depends on the moment of a kill.
 */
export function assertDetected(faults: Readonly<Record<string, number>>): void {
  const found = Object.values(faults).reduce((sum, it) => sum + it, 0)
  assert.ok(found > 0, `no fault was found, with seed ${SEED}`)
}
