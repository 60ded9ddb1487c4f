import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../test/kit/fast-check.ts'
import { stillWorld } from '../../test/kit/still-world.ts'
import {
  applicationKeyStatement,
  applicationStatement,
  sessionStatement,
} from '../ports/access-state.ts'
import type { TenantKeys } from '../ports/keyring.ts'
import type { StoredApplication, StoredApplicationKey, StoredSession } from '../ports/stored.ts'
import { AccessSum } from './access-sum.ts'

const TENANT = '01945d00-0000-4000-8000-00000000000a'
const keys = stillWorld().keyring.open(TENANT) as TenantKeys

test('the digest is the same in any order, and after rows were added and removed', () => {
  fc.assert(
    fc.property(statements(), statements(), fc.nat(), (rows, others, turn) => {
      const expected = sumOf(rows)
      const at = turn % (rows.length + 1)
      const sum = sumOf([...others, ...rows.slice(at), ...rows.slice(0, at)])
      for (const it of others) sum.remove(it)
      assert.ok(sum.equals(expected))
      assert.deepEqual(sum.state(7), expected.state(7))
      assert.ok(AccessSum.of(keys, TENANT, sum.state(9)).equals(expected))
    }),
  )
})

test('the digest is another one with another row, one row more, one less, or one twice', () => {
  fc.assert(
    fc.property(statements(), fc.nat(), statement(), (rows, n, other) => {
      const at = n % rows.length
      fc.pre(JSON.stringify(rows[at]) !== JSON.stringify(other))
      const sum = sumOf(rows)
      for (const it of [
        rows.toSpliced(at, 1),
        rows.toSpliced(at, 1, other),
        [...rows, other],
        [...rows, rows[at]!],
      ]) {
        assert.ok(!sumOf(it).equals(sum))
      }
    }),
  )
})

test('the digest of each revision differs, and the difference of two does not reveal a row', () => {
  const [row, another] = [['row'], ['another']]
  const digests = [1, 2].map((it) => number(sumOf([another]).state(it).digest))
  assert.notEqual(digests[0], digests[1])
  const added = number(sumOf([another, row]).state(2).digest)
  assert.notEqual(BigInt.asUintN(256, added - digests[0]!), number(keys.attest(row)))
  assert.ok(sumOf([another]).isWithout(sumOf([another, row]), [row]))
  assert.ok(!sumOf([another]).isWithout(sumOf([another, row]), [another]))
})

test('a change of any one column of an application, a key or a session changes its statement', () => {
  const application: StoredApplication = {
    id: 'a',
    name: 'b',
    type: 'private',
    permissions: ['token:read'],
    rules: [
      {
        description: '',
        priority: 1,
        container: '/',
        transform: 'mask',
        permissions: ['token:use'],
      },
    ],
    destinations: ['c'],
    allowedOrigins: ['d'],
    expiresAt: 1,
    createdBy: 'd',
    createdAt: 2,
    modifiedBy: 'e',
    modifiedAt: 3,
  }
  const key: StoredApplicationKey = {
    id: 'a',
    applicationId: 'b',
    hash: Uint8Array.of(1),
    prefix: 'c',
    version: 1,
    createdBy: 'd',
    createdAt: 2,
  }
  const session: StoredSession = {
    id: 'a',
    applicationId: 'b',
    keyId: 'c',
    hash: Uint8Array.of(1),
    nonceHash: Uint8Array.of(2),
    createdAt: 1,
    expiresAt: 2,
    authorization: {
      permissions: ['token:use'],
      rules: application.rules,
      applicationId: 'd',
      keyId: 'e',
    },
    proof: Uint8Array.of(3),
  }
  assertEach(application, (it) => applicationStatement(TENANT, it))
  assertEach(key, (it) => applicationKeyStatement(TENANT, it))
  assertEach(session, (it) => sessionStatement(TENANT, it), ['proof'])
  assertEach(session.authorization!, (it) =>
    sessionStatement(TENANT, { ...session, authorization: it }),
  )
  assertEach(application.rules[0]!, (it) =>
    applicationStatement(TENANT, { ...application, rules: [it] }),
  )
  const statements = [
    applicationStatement(TENANT, application),
    applicationStatement('another tenant', application),
    applicationKeyStatement(TENANT, application as unknown as StoredApplicationKey),
  ].map((it) => JSON.stringify(it))
  assert.equal(new Set(statements).size, statements.length)
})

test('a statement does not depend on the order in which a row has its members', () => {
  const rule = { description: 'x', priority: 1, container: '/', transform: 'mask', permissions: [] }
  const turned = Object.fromEntries(Object.entries(rule).toReversed())
  const of = (it: unknown) =>
    applicationStatement(TENANT, { rules: [it] } as unknown as StoredApplication)
  assert.deepEqual(of(turned), of(rule))
})

/** Replaces each member by every other kind of value. */
function assertEach<Row extends object>(
  row: Row,
  statementOf: (row: Row) => string[],
  without: readonly string[] = [],
): void {
  const seen = new Set([JSON.stringify(statementOf(row))])
  for (const name of Object.keys(row)) {
    for (const value of [
      null,
      'other',
      77,
      [],
      ['other'],
      [['other']],
      { x: 1 },
      Uint8Array.of(9),
    ]) {
      const statement = JSON.stringify(statementOf({ ...row, [name]: value }))
      if (without.includes(name)) assert.ok(seen.has(statement), name)
      else assert.ok(!seen.has(statement), `${name}: ${JSON.stringify(value)}`)
      seen.add(statement)
    }
  }
}

function sumOf(rows: readonly (readonly string[])[]): AccessSum {
  const sum = new AccessSum(keys, TENANT)
  for (const it of rows) sum.add(it)
  return sum
}

function number(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes).toString('hex')}`)
}

function statement(): fc.Arbitrary<string[]> {
  return fc.array(fc.string(), { maxLength: 3 })
}

function statements(): fc.Arbitrary<string[][]> {
  return fc.array(statement(), { minLength: 1, maxLength: 8 })
}
