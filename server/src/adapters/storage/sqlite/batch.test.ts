import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../../../test/kit/fast-check.ts'
import { BatchPacker, BatchReader, type SqliteValue } from './batch.ts'
import { packId } from './ids.ts'
import { STATEMENT, STATEMENTS, type StatementName } from './statements.ts'

const NAMES = Object.keys(STATEMENT) as StatementName[]

interface BatchStep {
  readonly statement: number
  readonly values: SqliteValue[]
}

test('a batch reads as it was packed, whatever its size', () => {
  let used: ArrayBuffer | null = null
  const property = fc.property(fc.array(fc.array(step)), (commits) => {
    const packer = new BatchPacker(used)
    for (const steps of commits) pack(packer, steps)
    used = packer.finish()
    assert.deepEqual(read(used), commits.map(asRead))
  })
  fc.assert(property, { numRuns: 100 })
})

test('a batch reads as it was packed, wherever its buffer has to grow', () => {
  // Each length shifts the rows after it by a byte relative to the end of the buffer.
  for (let length = 0; length < 300; length++) {
    const rows = Array.from({ length: 300 }, (_, n) => tokenRow(n, n === 0 ? length : 200))
    const packer = new BatchPacker()
    for (const row of rows) pack(packer, [row])
    assert.deepEqual(
      read(packer.finish()),
      rows.map((row) => asRead([row])),
    )
  }
})

test('a commit taken back leaves no trace, nor do the values it had', () => {
  const packer = new BatchPacker()
  pack(packer, [tokenRow(1, 10)])
  pack(packer, [tokenRow(2, 70_000)])
  packer.cancel()
  pack(packer, [tokenRow(2, 10)])
  assert.deepEqual(read(packer.finish()), [[tokenRow(1, 10)], [tokenRow(2, 10)]].map(asRead))
})

test('bytes are packed anew each time, for their owner may have written over them', () => {
  const packer = new BatchPacker()
  const bytes = Uint8Array.of(1)
  const hashed = (hash: Uint8Array): BatchStep => {
    return { statement: STATEMENT.insertIndexTerm, values: ['t', hash, 's'] }
  }
  pack(packer, [hashed(bytes)])
  bytes[0] = 2
  pack(packer, [hashed(bytes)])
  assert.deepEqual(read(packer.finish()), [[hashed(Uint8Array.of(1))], [hashed(Uint8Array.of(2))]])
})

function pack(packer: BatchPacker, steps: readonly BatchStep[]): void {
  packer.open()
  for (const { statement, values } of steps) packer.step(NAMES[statement]!, values)
}

function read(batch: ArrayBuffer): BatchStep[][] {
  const reader = new BatchReader(batch)
  const commits: BatchStep[][] = []
  while (reader.open() !== null) {
    const steps: BatchStep[] = []
    for (let statement = reader.step(); statement >= 0; statement = reader.step()) {
      const values: SqliteValue[] = []
      reader.values(statement, values, 0)
      steps.push({ statement, values })
    }
    commits.push(steps)
  }
  return commits
}

/** Ids are read back in the form that the database stores. */
function asRead(steps: readonly BatchStep[]): BatchStep[] {
  return steps.map(({ statement, values }) => {
    const { params } = STATEMENTS[statement]!
    const read = values.map((value, n) => {
      return typeof value === 'string' && params[n] === 'id' ? packId(value) : value
    })
    return { statement, values: read }
  })
}

/** Returns a row similar to those before it, so that most of its values take one byte. */
function tokenRow(n: number, length: number): BatchStep {
  const values = STATEMENTS[STATEMENT.insertToken]!.params.map((param): SqliteValue => {
    if (param === 'integer') return 1
    return param === 'bytes' ? new Uint8Array(length).fill(n) : param
  })
  values[1] = `${n}`
  return { statement: STATEMENT.insertToken, values }
}

const text = fc.oneof(
  fc.constantFrom('', 'same', 'é', '\0'),
  fc.uuid(),
  fc.string({ unit: 'binary' }),
  fc.nat(40_000).map((length) => '\u20ac'.repeat(length)),
)
const bytes = fc.nat(100_000).map((length) => new Uint8Array(length).fill(length))
const number = fc.oneof(fc.maxSafeInteger(), fc.constantFrom(0, 1))

const step = fc.nat(STATEMENTS.length - 1).chain((statement) => {
  const values = STATEMENTS[statement]!.params.map((param): fc.Arbitrary<SqliteValue> => {
    const value = { id: text, text, bytes, integer: number }[param]
    return fc.option<SqliteValue>(value)
  })
  return fc.tuple(...values).map((drawn) => ({ statement, values: drawn }))
})
