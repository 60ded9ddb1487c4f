/** Writes proxies and reactors. */
import type { StoredDefinition, DefinitionTable } from '../../ports/stored.ts'
import { packOptional, packText } from './text.ts'
import type { UnitOfWork } from './unit-of-work.ts'

/** `hash` is the proxy key's, for the table that has one. */
export async function insertDefinition(
  { session, tenantId }: UnitOfWork,
  table: DefinitionTable,
  it: StoredDefinition,
  hash?: Uint8Array,
): Promise<null> {
  const more = hash === undefined ? [] : [hash]
  const columns =
    'tenant, id, name, terms, created_by, created_at, modified_by, modified_at, revision'
  const values = ['$1, $2, $3, $4, $5, $6, $7, $8, $9', ...more.map(() => '$10')]
  await session.run(
    `INSERT INTO ${table} (${[columns, ...more.map(() => 'hash')].join(', ')})
     VALUES (${values.join(', ')})`,
    [
      tenantId,
      it.id,
      packText(it.name),
      it.terms,
      packText(it.createdBy),
      it.createdAt,
      packOptional(it.modifiedBy),
      it.modifiedAt,
      it.revision,
      ...more,
    ],
  )
  return null
}

/** Replaces the previous revision; returns whether that was there. */
export async function updateDefinition(
  { session, tenantId }: UnitOfWork,
  table: DefinitionTable,
  it: StoredDefinition,
): Promise<boolean> {
  const changed = await session.run(
    `UPDATE ${table} SET name = $3, terms = $4, modified_by = $5, modified_at = $6, revision = $7
     WHERE tenant = $1 AND id = $2 AND revision = $7 - 1`,
    [
      tenantId,
      it.id,
      packText(it.name),
      it.terms,
      packOptional(it.modifiedBy),
      it.modifiedAt,
      it.revision,
    ],
  )
  return changed > 0
}
