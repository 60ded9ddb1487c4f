import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Sensitive } from '../base/sensitive.ts'
import { flipped } from '../../test/kit/damage.ts'
import { TransparentKeyring } from '../../test/kit/transparent-keyring.ts'
import { ENVELOPE_TABLES } from '../ports/store/entities.ts'
import type { EnvelopeCursor, StoredEnvelope } from '../ports/stored.ts'
import {
  verifyValues,
  type DamagedValue,
  type ReadableVault,
  type VerifyStep,
} from './verify-values.ts'

const TENANT = '01945d00-0000-4000-8000-00000000000a'
const OTHER = '01945d00-0000-4000-8000-00000000000b'

describe('verifyValues()', () => {
  test('does not report a value that was replaced between reading and decrypting it', async () => {
    const vault = await vaultOf([3])
    const [first] = vault.rows
    let reads = 0
    vault.onRead = (found) => {
      reads += 1
      return reads === 1
        ? found.map((it) => ({ ...it, envelope: flipped(first!.envelope) }))
        : found
    }
    assert.deepEqual(damagedIn(await all(vault)), [])
    assert.ok(reads > 1)
  })

  test('does not report a value that was deleted between reading and decrypting it', async () => {
    const vault = await vaultOf([3])
    let reads = 0
    vault.onRead = (found) => {
      reads += 1
      return reads === 1 ? found.map((it) => ({ ...it, envelope: flipped(it.envelope) })) : []
    }
    assert.deepEqual(damagedIn(await all(vault)), [])
  })

  test('reports a value that is damaged at every reading, and counts all values', async () => {
    const vault = await vaultOf([3])
    vault.onRead = (found) =>
      found.map((it, n) => (n === 1 ? { ...it, envelope: flipped(it.envelope) } : it))
    const steps = await all(vault)
    const [damaged, ...others] = damagedIn(steps)
    assert.deepEqual([damaged!.kind, damaged!.id, others], ['token_data', vault.rows[1]!.row, []])
    assert.equal(
      steps.reduce((sum, it) => sum + it.values, 0),
      3 + KEYS,
    )
  })

  test('continues after any step: every value is verified once', async () => {
    const vault = await vaultOf([2, 1])
    const whole = await all(vault)
    for (let n = 1; n < whole.length; n++) {
      const rest = await all(vault, whole[n - 1]!.next)
      const total = [...whole.slice(0, n), ...rest].reduce((sum, it) => sum + it.values, 0)
      assert.equal(total, 3 + 2 * KEYS, `after step ${n}`)
    }
  })
})

const KEYS = 3

interface TestVault extends ReadableVault {
  readonly rows: StoredEnvelope[]
  onRead: (found: StoredEnvelope[]) => StoredEnvelope[]
}

/** Tenants with so many tokens each. */
async function vaultOf(counts: readonly number[]): Promise<TestVault> {
  const ids = [TENANT, OTHER].slice(0, counts.length)
  const maker = new TransparentKeyring(async () => [])
  const keys = new Map(
    await Promise.all(ids.map(async (id) => [id, (await maker.create(id, 0)).wrapped] as const)),
  )
  const keyring = new TransparentKeyring(async (id) => keys.get(id) ?? [])
  const rows: (StoredEnvelope & { tenantId: string })[] = []
  for (const [n, tenantId] of ids.entries()) {
    const opened = await keyring.open(tenantId)
    for (let row = 0; row < counts[n]!; row++) {
      const context = { id: `${n}-${row}`, part: 'data', type: 'token', containers: [] }
      const envelope = opened.seal(context, new Sensitive('x'))
      rows.push({ ...context, part: 'data', table: 'tokens', row: context.id, envelope, tenantId })
    }
  }
  const vault: TestVault = {
    rows,
    onRead: (found) => found,
    clock: { elapsed: () => 0, yield: async () => {} },
    keyring: Object.assign(keyring, { isReadable: async () => true }),
    store: {
      tenants: {
        ids: async () => ids,
        find: async () => null,
        keys: async (id) => keys.get(id) ?? [],
        envelopes: async (tenantId, { after }) => {
          const own = rows.filter(
            (it) => it.tenantId === tenantId && after?.table === 'tokens' && it.row > after.row,
          )
          const found = vault.onRead(own)
          return { found, looked: found.length, next: following(after!) }
        },
      },
    },
  }
  return vault
}

function following({ table }: EnvelopeCursor): EnvelopeCursor | null {
  const next = ENVELOPE_TABLES[ENVELOPE_TABLES.indexOf(table) + 1]
  return next === undefined ? null : { table: next, row: '' }
}

async function all(vault: ReadableVault, from?: VerifyStep['next']): Promise<VerifyStep[]> {
  const steps: VerifyStep[] = []
  for await (const it of verifyValues(vault, { depth: 'all', from })) steps.push(it)
  return steps
}

function damagedIn(steps: readonly VerifyStep[]): DamagedValue[] {
  return steps.flatMap((it) => it.damaged)
}
