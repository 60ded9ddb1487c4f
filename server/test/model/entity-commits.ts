/** Commits that change rows of described entities: drawn as drafts, then aimed at the rows that the model has. */
import * as fc from '../kit/fast-check.ts'
import type { Change } from '../../src/ports/change.ts'
import { descriptionOf, ENTITY_NAMES, type EntityName } from '../../src/ports/store/entities.ts'
import type { EntityChange } from '../../src/ports/store/entity-change.ts'
import type { EntityModel, ModelOutcome, OtherChange } from './entity-model.ts'
import { anyRow, hashesIn, type EntityRow } from './entity-values.ts'

type NotInserted = Exclude<EntityName, Extract<EntityChange, { kind: 'insert' }>['entity']>

/** The changes that insert rows which no derived change does. A new entity that nothing inserts does not compile. */
const INSERTED_BY = {
  tenant: 'insert-tenant',
  answer: 'remember-answer',
} as const satisfies Record<NotInserted, OtherChange['kind']>

/** Changes with statements of their own, and the entity whose rows they change. Tenants come and go with their sequence. */
const OTHER_CHANGES = [
  [INSERTED_BY.answer, 'answer'],
  ['authorize-session', 'session'],
  ['prove-session', 'session'],
  ['claim-job', 'job'],
] as const satisfies readonly (readonly [OtherChange['kind'], EntityName])[]

export interface ChangeDraft {
  readonly kind: EntityChange['kind'] | (typeof OTHER_CHANGES)[number][0]
  readonly entity: EntityName
  /** A row of the entity, and one of each that it may belong to. */
  readonly rows: Readonly<Record<string, EntityRow>>
  /** Which of the rows there are is changed, or gets a child; null for the row as drawn, wherever it meets. */
  readonly aim: number | null
  /** The difference from the right revision, or whether something else is out of date. */
  readonly off: number
}

export interface CommitDraft {
  /** Of the three of a sequence, one of which is not there. */
  readonly tenant: number
  readonly changes: readonly ChangeDraft[]
}

const DERIVED = ENTITY_NAMES.flatMap((entity) =>
  (['insert', 'update', 'delete'] as const)
    .filter((kind) => descriptionOf(entity).changes[kind] !== undefined)
    .map((kind) => ({ kind, entity })),
)
const OTHERS = OTHER_CHANGES.map(([kind, entity]) => ({ kind, entity }))

const aDraft: fc.Arbitrary<ChangeDraft> = fc
  .constantFrom(...DERIVED, ...OTHERS, ...OTHERS)
  .chain((it) =>
    fc.record({
      kind: fc.constant(it.kind),
      entity: fc.constant(it.entity),
      rows: fc.record(Object.fromEntries(lineOf(it.entity).map((one) => [one, anyRow(one)]))),
      aim: fc.option(fc.nat(9), { freq: 5 }),
      off: fc.constantFrom(...Array.from({ length: 14 }, () => 0), -1, 1),
    }),
  )

/** Returns the entity, and those that its rows belong to. */
function lineOf(name: EntityName): EntityName[] {
  const { parent } = descriptionOf(name)
  return parent === undefined ? [name] : [name, ...lineOf(parent.entity as EntityName)]
}

export const someCommits: fc.Arbitrary<readonly CommitDraft[]> = fc.array(
  fc.record({
    tenant: fc.constantFrom(0, 0, 0, 1, 1, 2),
    changes: fc.array(aDraft, { minLength: 1, maxLength: 5 }),
  }),
  { minLength: 6, maxLength: 24, size: 'max' },
)

/** Every tenant that a sequence inserts, with its keys. */
export const aTenant = fc.record({
  row: anyRow('tenant'),
  keys: fc.uniqueArray(anyRow('tenant_key'), {
    maxLength: 3,
    selector: (it) => JSON.stringify([it['purpose'], it['version']]),
  }),
})

export interface Resolved {
  readonly changes: readonly Change[]
  readonly outcome: ModelOutcome
  /** After the commit. */
  readonly model: EntityModel
}

/**
 * Returns the changes that a commit makes of the drafts, and what the model says of them. Changes the row where one may not be
 * inserted: that would be a fault, not a conflict.
 */
export function resolve(
  before: EntityModel,
  tenantId: string,
  drafts: readonly ChangeDraft[],
  uniqueHash: () => Uint8Array,
): Resolved {
  const model = before.copy()
  const changes: Change[] = []
  let outcome: ModelOutcome = null
  for (const draft of drafts) {
    for (const it of [draft, ...insteadOfInsertion(draft)]) {
      const change = aimed(model, tenantId, it, uniqueHash)
      const met = change === null ? 'fault' : model.apply(tenantId, change)
      if (change === null || met === 'fault') continue
      changes.push(change)
      outcome ??= met
      break
    }
  }
  return { changes, outcome, model: outcome === null ? model : before }
}

function insteadOfInsertion(draft: ChangeDraft): ChangeDraft[] {
  const { changes } = descriptionOf(draft.entity)
  const kinds = (['update', 'delete'] as const).filter((it) => changes[it] !== undefined)
  return kinds.map((kind) => ({ ...draft, kind }))
}

/** Aims a draft. Where there is no row to change, it inserts one; where there is no parent, a parent; unless drawn to miss. */
function aimed(
  model: EntityModel,
  tenantId: string,
  draft: ChangeDraft,
  uniqueHash: () => Uint8Array,
): EntityChange | OtherChange | null {
  const { kind, entity, rows, aim, off } = draft
  const { key, parent, changes } = descriptionOf(entity)
  const hashes = Object.fromEntries(hashesIn(entity).map((it) => [it, uniqueHash()]))
  const row = { ...rows[entity]!, ...hashes }
  const isOpen = (it: EntityRow) => kind !== 'authorize-session' || it['authorization'] === null
  const existing = pick(model.all(tenantId, entity).filter(isOpen), aim)
  if (kind === 'insert') {
    const of = parent?.entity as EntityName | undefined
    if (of === undefined || aim === null) return { kind, entity, row } as unknown as EntityChange
    const chosen = pick(model.all(tenantId, of), aim)
    if (chosen === null && descriptionOf(of).changes.insert !== undefined) {
      return aimed(model, tenantId, { ...draft, entity: of }, uniqueHash)
    }
    const named = descriptionOf(of).key.map((it, n) => [parent!.members[n]!, chosen?.[it]])
    const link = chosen === null ? {} : (Object.fromEntries(named) as EntityRow)
    return { kind, entity, row: { ...row, ...link } } as unknown as EntityChange
  }
  if (existing === null && aim !== null && changes.insert !== undefined) {
    return aimed(model, tenantId, { ...draft, kind: 'insert' }, uniqueHash)
  }

  const named = existing === null ? row : { ...row, ...only(existing, key) }
  const current = model.find(tenantId, entity, named)
  const revision = Number((current ?? row)['revision'] ?? 0)
  if (kind === 'update') {
    const next = 'revision' in row ? { revision: Math.max(0, revision + 1 + off) } : {}
    return { kind, entity, row: { ...named, ...next } } as unknown as EntityChange
  }
  if (kind === 'delete') {
    const by = changes.delete!.by ?? key
    const asked = { ...named, revision: Math.max(0, revision + off) }
    return { kind, entity, ...only(asked, by) } as unknown as EntityChange
  }
  return other(model, { kind, named, current, off })
}

/** Returns a change that is not derived; null if it has nothing to say about such a row. */
function other(
  model: EntityModel,
  {
    kind,
    named,
    current,
    off,
  }: {
    readonly kind: OtherChange['kind']
    readonly named: EntityRow
    readonly current: EntityRow | null
    readonly off: number
  },
): OtherChange | null {
  switch (kind) {
    case 'remember-answer': {
      // A store may remove any other answer that is expired: only the first to expire may be.
      const ends = model.everywhere('answer').map((it) => Number(it['expiresAt']))
      const end = Number(current?.['expiresAt'] ?? 0)
      const isFirst = current !== null && ends.every((it) => it >= end)
      const now = isFirst && off === 0 && ends.filter((it) => it === end).length === 1 ? end : 0
      const expiresAt = Math.min(
        Number.MAX_SAFE_INTEGER,
        Math.max(now + 1, Number(named['expiresAt'])),
      )
      if (expiresAt <= now) return null
      return { kind, answer: { ...named, expiresAt }, now } as unknown as OtherChange
    }

    case 'authorize-session': {
      const { id, authorization, expiresAt, proof } = named
      if (authorization === null || proof === null) return null
      const now = off === 1 ? Number(current?.['expiresAt'] ?? 0) : 0
      return { kind, id, authorization, expiresAt, proof, now } as unknown as OtherChange
    }

    case 'prove-session': {
      if (named['proof'] === null) return null
      const before = off === 0 ? (current?.['proof'] ?? null) : Uint8Array.of(1, 2, 3)
      return { kind, id: named['id'], before, proof: named['proof'] } as unknown as OtherChange
    }

    case 'claim-job': {
      const revision = Math.max(0, Number((current ?? named)['revision']) + off)
      return { kind, id: named['id'], revision, dueAt: named['dueAt'] } as unknown as OtherChange
    }

    default:
      throw new TypeError(`Cannot aim ${kind}`)
  }
}

function pick<Item>(items: readonly Item[], aim: number | null): Item | null {
  return aim === null || items.length === 0 ? null : items[aim % items.length]!
}

function only(row: EntityRow, members: readonly string[]): EntityRow {
  return Object.fromEntries(members.map((it) => [it, row[it]]))
}
