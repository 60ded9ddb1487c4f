import type { BatchPacker } from './batch.ts'

/** A commit that is being packed. */
export interface SqliteUnitOfWork {
  readonly packer: BatchPacker
  readonly tenantId: string
  /** The transaction that the commit is part of. */
  readonly within: string | null
}
