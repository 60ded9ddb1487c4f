/** Holds the rows of described entities in a store to the model, and all that is derived from the descriptions besides. */
import assert from 'node:assert/strict'
import { sealContextOf } from '../../src/key-rotation/seal-context.ts'
import type { Change, RenewedEnvelope } from '../../src/ports/change.ts'
import type { Store } from '../../src/ports/store.ts'
import {
  descriptionOf,
  ENTITIES,
  ENTITY_NAMES,
  type EntityName,
} from '../../src/ports/store/entities.ts'
import type { Column, ColumnGroup } from '../../src/ports/store/entity.ts'
import type { EnvelopeCursor, StoredEnvelope } from '../../src/ports/stored.ts'
import {
  VAULT_TABLES,
  type VaultReader,
  type VaultTableName,
} from '../../src/ports/vault-tables.ts'
import * as fc from '../kit/fast-check.ts'
import { aTenant, resolve, someCommits } from './entity-commits.ts'
import { EntityModel } from './entity-model.ts'
import { readersAgree } from './entity-readers.ts'
import type { ReadableStore } from './entity-stores.ts'
import type { EntityRow } from './entity-values.ts'

const NOW = 1_000

/** No envelope begins with it. */
const NO_KEY_ID = Uint8Array.of(0xff, 0xff)

/** Commits between two comparisons of all rows. */
const COMPARED_EVERY = 6

export interface EntityRun {
  readonly sequences: number
  /** The seeds of the run unless given. */
  readonly seed?: number
  /** Called with the rows at the end of each sequence, before its tenants are deleted. */
  readonly atEnd?: (model: EntityModel, tenantIds: readonly string[]) => Promise<void>
}

/** Runs so many sequences of commits on the store and on the model; throws where they differ. */
export async function holdEntitiesToModel(
  { store, reader }: ReadableStore,
  { sequences, seed, atEnd = async () => {} }: EntityRun,
): Promise<void> {
  const rootKey = { id: 'root', check: Uint8Array.of(1) }
  await store.commit(uuid('f', 0), [{ kind: 'install', rootKey }])
  let numbers = 0
  const next = () => ++numbers
  const property = fc.asyncProperty(
    fc.tuple(aTenant, aTenant, aTenant),
    someCommits,
    async (tenants, commits) => {
      const tenantIds = tenants.map(() => uuid('b', next()))
      const stage = new EntityStage(store, reader, tenantIds, next)
      for (const n of [0, 1]) await stage.insertTenant(n, tenants[n]!)
      for (const [n, { tenant, changes }] of commits.entries()) {
        const {
          changes: made,
          outcome,
          model,
        } = resolve(stage.model, tenantIds[tenant]!, changes, () => hash(next()))
        await stage.commit(tenantIds[tenant]!, made, outcome)
        stage.model = model
        if (n % COMPARED_EVERY === COMPARED_EVERY - 1) await stage.compareRows()
      }
      await stage.compareRows()
      await readersAgree(store, stage.model, tenantIds)
      await stage.renewEnvelopes()
      await atEnd(stage.model, tenantIds)
      await stage.insertTenant(2, tenants[2])
      await stage.deleteTenants()
    },
  )
  const runs = { numRuns: sequences, ...(seed === undefined ? {} : { seed }) }
  await fc.assert(property, runs)
}

/** One sequence: its tenants, and what the model says of them. */
class EntityStage {
  model = new EntityModel()
  readonly #store: Store
  readonly #reader: VaultReader
  readonly #tenantIds: readonly string[]
  readonly #next: () => number

  constructor(store: Store, reader: VaultReader, tenantIds: readonly string[], next: () => number) {
    this.#store = store
    this.#reader = reader
    this.#tenantIds = tenantIds
    this.#next = next
  }

  async insertTenant(
    n: number,
    drawn: { readonly row: EntityRow; readonly keys: readonly EntityRow[] },
  ) {
    const id = this.#tenantIds[n]!
    const tenant = { ...drawn.row, id, name: `tenant ${this.#next()}` }
    const change = { kind: 'insert-tenant', tenant, keys: drawn.keys } as unknown as Extract<
      Change,
      { kind: 'insert-tenant' }
    >
    await this.commit(id, [change], this.model.apply(id, change))
  }

  async commit(tenantId: string, changes: readonly Change[], outcome: string | null) {
    if (changes.length === 0) return
    const inState = changes.some((it) => 'entity' in it && descriptionOf(it.entity).inAccessState)
    const left = inState ? [{ kind: 'leave-access-state' } as const] : []
    const conflict = await this.#store.commit(tenantId, [...changes, ...left])
    assert.deepEqual(conflict, outcome === null ? null : { kind: outcome })
  }

  async compareRows(): Promise<void> {
    await rowsAgree(this.#reader, this.model, this.#tenantIds)
  }

  /** Each ciphertext is found once, is sealed for the right context, and is replaced without anything else. */
  async renewEnvelopes(): Promise<void> {
    for (const tenantId of this.#tenantIds) {
      for (const limit of [2, 100]) {
        const found = await envelopesIn(this.#store, tenantId, limit)
        const seen = found.map((it) => ({
          ...sealContextOf(it),
          table: it.table,
          bytes: plain(it.envelope),
        }))
        assert.deepEqual(sorted(seen), sorted(ciphertextsIn(this.model, tenantId)))
      }
      const found = await envelopesIn(this.#store, tenantId, 100)
      // Every third was changed after it was read.
      const envelopes = found.map((it, n): RenewedEnvelope => {
        const envelope = n % 3 === 2 ? Uint8Array.of(1, ...it.envelope) : it.envelope
        return {
          ...it,
          envelope,
          renewed: Uint8Array.of(n % 100, ...it.envelope.subarray(0, 5), 7),
        }
      })
      await this.commit(tenantId, [{ kind: 'renew-envelopes', envelopes }], null)
      const current = envelopes.filter((_, n) => n % 3 !== 2)
      for (const it of current) renewIn(this.model, tenantId, it)
    }
    await this.compareRows()
  }

  /** A deleted tenant leaves no row behind once it is cleared; the rows of others stay. */
  async deleteTenants(): Promise<void> {
    for (const [n, tenantId] of this.#tenantIds.entries()) {
      const change = { kind: 'delete-tenant', at: NOW } as const
      await this.commit(tenantId, [change], this.model.apply(tenantId, change))
      if (n === 0) await this.compareRows()
      this.model.clear(tenantId)
      for (let steps = 0; await this.#isDeleted(tenantId); steps++) {
        assert.ok(steps < 50, 'clearing makes no progress')
        await this.commit(tenantId, [{ kind: 'clear-tenant', deletedBefore: NOW + 1 }], null)
      }
      await this.compareRows()
    }
  }

  async #isDeleted(tenantId: string): Promise<boolean> {
    return (await this.#store.tenants.deleted()).some((it) => it.id === tenantId)
  }
}

/** Compares all rows of the tenants in the tables of described entities. */
export async function rowsAgree(
  reader: VaultReader,
  model: EntityModel,
  tenantIds: readonly string[],
): Promise<void> {
  for (const name of ENTITY_NAMES) {
    const { table } = ENTITIES[name]
    const names = Object.keys(VAULT_TABLES[table].columns)
    const found = await rowsIn(reader, table)
    const seen = found
      .map((row) => Object.fromEntries(names.map((it, n) => [it, plain(row[n])])))
      .filter((row) => tenantIds.includes(String(row[tenantColumn(name)])))
    const expected = tenantIds.flatMap((tenantId) =>
      model.all(tenantId, name).map((row) => rowOf(name, tenantId, row)),
    )
    assert.deepEqual(sorted(seen), sorted(expected), `rows of ${name}`)
  }
}

/** Returns all rows of a table. */
export async function rowsIn(reader: VaultReader, table: VaultTableName) {
  const all = []
  for (let after: string | null = null; ;) {
    const { rows, last } = await reader.readChunk(table, after)
    all.push(...rows)
    after = last
    if (last === null) return all
  }
}

function tenantColumn(name: EntityName): string {
  return descriptionOf(name).tenantColumn ?? 'tenant'
}

/** Returns the row as its table should have it. */
function rowOf(
  name: EntityName,
  tenantId: string,
  row: EntityRow,
): Readonly<Record<string, unknown>> {
  const values = columnValues(descriptionOf(name).columns, row)
  return { ...Object.fromEntries(values), [tenantColumn(name)]: tenantId }
}

function columnValues(columns: object, row: EntityRow | null): [column: string, value: unknown][] {
  const entries = Object.entries(columns as Readonly<Record<string, Column | ColumnGroup>>)
  return entries.flatMap(([member, it]): [string, unknown][] => {
    const value = row === null ? null : row[member]
    if ('group' in it) return columnValues(it.group, value as EntityRow | null)
    const isText = it.kind === 'json' && value !== null
    return [[it.name, isText ? JSON.stringify(value) : plain(value)]]
  })
}

async function envelopesIn(
  store: Store,
  tenantId: string,
  limit: number,
): Promise<StoredEnvelope[]> {
  const all: StoredEnvelope[] = []
  for (let after: EnvelopeCursor | null = null; ;) {
    const stretch = { dataKeyId: NO_KEY_ID, after, limit }
    const { found, next } = await store.tenants.envelopes(tenantId, stretch)
    all.push(...found)
    if (next === null) return all
    after = next
  }
}

/** Returns the contexts and ciphertexts that the descriptions say are there. */
function ciphertextsIn(model: EntityModel, tenantId: string): object[] {
  return ENTITY_NAMES.flatMap((name) => {
    const { table } = ENTITIES[name]
    const { sealedAs: type } = descriptionOf(name)
    return model.all(tenantId, name).flatMap((row) =>
      sealedMembers(name).flatMap(({ member, part }) => {
        const id = row['id'] ?? tenantId
        const context = { id, part, type, containers: [] }
        return row[member] === null ? [] : [{ ...context, table, bytes: plain(row[member]) }]
      }),
    )
  })
}

function sealedMembers(name: EntityName): { readonly member: string; readonly part: string }[] {
  return Object.entries(descriptionOf(name).columns as Readonly<Record<string, Column>>).flatMap(
    ([member, { encrypted }]) => (encrypted === undefined ? [] : { member, part: encrypted.part }),
  )
}

function renewIn(model: EntityModel, tenantId: string, it: RenewedEnvelope): void {
  const name = ENTITY_NAMES.find((one) => ENTITIES[one].table === it.table)!
  const { member } = sealedMembers(name).find(({ part }) => part === it.part)!
  const row = model.find(tenantId, name, { id: it.id })!
  model.put(tenantId, name, { ...row, [member]: it.renewed })
}

/** Returns bytes as text, so that a difference is readable and their class does not matter. */
function plain(value: unknown): unknown {
  return value instanceof Uint8Array ? `0x${Buffer.from(value).toString('hex')}` : value
}

/** Returns objects in an order that all of their members make. */
function sorted<Item extends object>(items: readonly Item[]): Item[] {
  const keyed = items.map((it): [string, Item] => [
    JSON.stringify(Object.entries(it).toSorted(([a], [b]) => compare(a, b))),
    it,
  ])
  return keyed.toSorted(([a], [b]) => compare(a, b)).map(([, it]) => it)
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}

function uuid(block: string, n: number): string {
  return `00000000-0000-4000-8000-${block}${n.toString(16).padStart(11, '0')}`
}

/** Returns 32 bytes that no other number has. */
function hash(n: number): Uint8Array {
  return new TextEncoder().encode(String(n).padStart(32))
}
