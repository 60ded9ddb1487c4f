import {
  ENTITIES,
  SEALED_NAMES,
  type EnvelopePart,
  type EnvelopeTable,
} from '../../../ports/store/entities.ts'
import { encryptedColumnsOf, keyColumnsOf } from '../../../ports/store/entity-columns.ts'

/** The columns of a table that hold envelopes. */
export interface SealedColumns {
  readonly table: EnvelopeTable
  /** The column that identifies a row within the tenant. */
  readonly row: string
  readonly rowKind: 'id' | 'text'
  readonly columns: Readonly<Record<string, EnvelopePart>>
  /** SQL for the seal context of its envelopes, and the tables it comes from. */
  readonly id: string
  readonly type: string
  readonly containers: string
  readonly from: string
}

/** Returns every column with envelopes; a test of each database checks that there are no others. `textOf` renders an id as text. */
export function sealedColumns(textOf: (id: string) => string): SealedColumns[] {
  const token = { row: 'serial', rowKind: 'id', columns: { data: 'data', cvc: 'cvc' } } as const
  return [
    {
      ...token,
      table: 'tokens',
      id: `coalesce(it.name, ${textOf('it.serial')})`,
      type: 'it.type',
      containers: 'it.containers',
      from: 'tokens AS it',
    },
    {
      ...token,
      table: 'pending',
      id: `coalesce(token.name, ${textOf('token.serial')})`,
      type: 'token.type',
      containers: "coalesce(it.containers, '[]')",
      // Pending changes of a deleted token never take effect, so the join may skip them.
      from: 'pending AS it JOIN tokens AS token USING (tenant, serial)',
    },
    ...SEALED_NAMES.map((name): SealedColumns => {
      const { table } = ENTITIES[name]
      const [key] = keyColumnsOf(name)
      const row = key?.name ?? 'tenant'
      const columns = encryptedColumnsOf(name).map((it) => [it.name, it.encrypted!.part])
      return {
        table,
        row,
        rowKind: key?.kind === 'name' ? 'text' : 'id',
        columns: Object.fromEntries(columns) as Record<string, EnvelopePart>,
        id: textOf(`it.${row}`),
        type: "''",
        containers: "'[]'",
        from: `${table} AS it`,
      }
    }),
  ]
}
