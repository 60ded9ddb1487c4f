import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import { sealContextOf } from '../../src/key-rotation/seal-context.ts'
import { ANY_TOKEN } from '../../src/ports/token-query.ts'
import type { EnvelopeCursor, FoundToken, StoredEnvelope } from '../../src/ports/stored.ts'
import type { World } from '../../src/ports/world.ts'

type ComparedWorld = Pick<World, 'store' | 'keyring'>

/** How many were compared, and opened on both sides. */
export interface ComparedStores {
  tokens: number
  envelopes: number
  events: number
}

const AT_ONCE = 500
const LATER = 8e15

/**
 * Reads everything of two stores through what every store offers, opens what is sealed with each side's own keys, and
 * throws at the first difference.
 */
export async function compareStores(
  one: ComparedWorld,
  other: ComparedWorld,
): Promise<ComparedStores> {
  const compared = { tokens: 0, envelopes: 0, events: 0 }
  const both = async <Found>(read: (side: ComparedWorld) => Promise<Found>): Promise<Found> => {
    const [first, second] = [await read(one), await read(other)]
    assertSame(second, first)
    return first
  }
  await both(({ store }) => store.tenants.rootKeyCheck())
  await both(async ({ store }) =>
    (await store.tenants.deleted()).map((it) => [it.id, it.deletedAt]),
  )
  const tenants = await both(async ({ store }) => (await store.tenants.ids()).toSorted())
  for (const id of tenants) {
    await both(({ store }) => store.tenants.find(id))
    await both(({ store }) => store.tenants.keys(id))
    await both(({ store }) => store.tokens.usage(id, { now: LATER / 2, since: 0 }))
    await both(({ store }) => store.jobs.callbackSecrets(id))
    for (const stage of ['run', 'deliver', 'keep', 'dead'] as const) {
      const due = { stage, now: LATER, limit: AT_ONCE, without: [] }
      await both(({ store }) => store.jobs.due(id, due))
    }
    const page = { page: 1, size: AT_ONCE }
    await both(({ store }) => store.proxies.list(id, {}, page))
    await both(({ store }) => store.rows('reactor').list(id, {}, page))
    const applications = await both(({ store }) => {
      return store.applications.list(id, { now: 0 }, page)
    })
    for (const it of applications.items) await both((at) => at.store.applications.keys(id, it.id))
    await compareAuditLogs(id)
    await compareTokens(id)
    await compareSealed(id)
  }
  return compared

  async function compareAuditLogs(id: string): Promise<void> {
    await both(({ store }) => store.auditLog.state(id))
    for (let after = 0; ;) {
      const rows = await both(({ store }) => store.auditLog.rowsAfter(id, after, AT_ONCE))
      if (rows.length === 0) return
      after = rows.at(-1)!.number
      compared.events += rows.length
    }
  }

  async function compareTokens(id: string): Promise<void> {
    const query = { where: ANY_TOKEN, within: null, now: 0 }
    for (let after: string | null = null; ;) {
      const stretch = { after, size: AT_ONCE }
      const tokens: FoundToken[] = await both((at) => at.store.tokens.listAfter(id, query, stretch))
      if (tokens.length === 0) return
      after = tokens.at(-1)!.internalId
      compared.tokens += tokens.length
      for (const it of tokens) {
        if (it.data === null) await both((at) => at.store.tokens.find(id, [it.id]))
      }
    }
  }

  /** Compares also data that no endpoint shows. The envelopes are equal by now, but the keys of both sides must open them. */
  async function compareSealed(id: string): Promise<void> {
    const [keys, otherKeys] = [await one.keyring.open(id), await other.keyring.open(id)]
    const left = sealedBy(other, id)
    for await (const [name, it] of sealedBy(one, id)) {
      const { value } = await left.next()
      assert.equal((value as [string, StoredEnvelope])[0], name)
      const envelope = (value as [string, StoredEnvelope])[1]
      assert.deepEqual(envelope, it)
      const opened = keys.open(sealContextOf(it), it.envelope).reveal()
      assert.equal(otherKeys.open(sealContextOf(envelope), envelope.envelope).reveal(), opened)
      compared.envelopes += 1
    }
    assert.equal((await left.next()).done, true)
  }
}

/** Of long lists only the first items that differ are shown: to lay all of them side by side takes minutes. */
function assertSame(actual: unknown, expected: unknown): void {
  if (isDeepStrictEqual(actual, expected)) return
  if (Array.isArray(actual) && Array.isArray(expected)) {
    const at = expected.findIndex((it, n) => !isDeepStrictEqual(actual[n], it))
    if (at >= 0) assert.deepEqual(actual[at], expected[at])
    assert.equal(actual.length, expected.length)
  }
  assert.deepEqual(actual, expected)
}

/** In an order that both stores have: answers lie by their ids here, and by the form of those there. */
async function* sealedBy(
  { store }: ComparedWorld,
  id: string,
): AsyncGenerator<[string, StoredEnvelope]> {
  let answers: [string, StoredEnvelope][] = []
  let after: EnvelopeCursor | null = null
  do {
    const stretch = { dataKeyId: Uint8Array.of(0), after, limit: AT_ONCE }
    const { found, next } = await store.tenants.envelopes(id, stretch)
    const named = found.map((it): [string, StoredEnvelope] => [
      `${it.table} ${it.row} ${it.part}`,
      it,
    ])
    if (found[0]?.table === 'answers') answers.push(...named)
    else {
      yield* answers.toSorted(([a], [b]) => (a < b ? -1 : 1))
      answers = []
      yield* named
    }
    after = next
  } while (after !== null)
}
