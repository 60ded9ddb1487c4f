/** Encodes an audit checkpoint as text, for stores to keep. */
import type { SealedAccess } from './access-state.ts'
import { CHAIN_START, type ChainPosition, type AuditCheckpoint } from './audit-log.ts'

/** Returns the stored text of a checkpoint. */
export function packCheckpoint({ removed, last, at, access, proof }: AuditCheckpoint): string {
  const packed: PackedCheckpoint = {
    removed: packPosition(removed),
    last: packPosition(last),
    at,
    ...(access === null ? {} : { access: packSealedAccess(access) }),
    proof: Buffer.from(proof).toString('base64'),
  }
  return JSON.stringify(packed)
}

/** Returns the start of the stored text of every checkpoint with the same last removed event. */
export function packedBeginning({ removed }: Pick<AuditCheckpoint, 'removed'>): string {
  return JSON.stringify({ removed: packPosition(removed) }).slice(0, -1)
}

interface PackedCheckpoint {
  readonly removed: PackedPosition
  readonly last: PackedPosition
  readonly at: number
  readonly access?: PackedSealedAccess
  readonly proof: string
}

interface PackedSealedAccess {
  readonly revision: number
  readonly digest: string
}

interface PackedPosition {
  readonly number: number
  readonly listed: number
  readonly hash: string
}

/**
 * Returns the checkpoint that is stored as `text`, beside the number of its last event. For a text that packCheckpoint() did not
 * make, and for another number, returns one that proves nothing: a number that is too high would prevent later checkpoints.
 */
export function unpackCheckpoint(text: string, lastNumber: number): AuditCheckpoint {
  try {
    const { removed, last, at, access, proof } = JSON.parse(text) as PackedCheckpoint
    if (last.number !== lastNumber) return PROVES_NOTHING
    return {
      removed: unpackPosition(removed),
      last: unpackPosition(last),
      at,
      access: access === undefined ? null : unpackSealedAccess(access),
      proof: Uint8Array.from(Buffer.from(proof, 'base64')),
    }
  } catch {
    return PROVES_NOTHING
  }
}

const PROVES_NOTHING: AuditCheckpoint = {
  removed: CHAIN_START,
  last: CHAIN_START,
  at: 0,
  access: null,
  proof: new Uint8Array(),
}

function packPosition({ number, listed, hash }: ChainPosition): PackedPosition {
  return { number, listed, hash: Buffer.from(hash).toString('hex') }
}

function unpackPosition({ number, listed, hash }: PackedPosition): ChainPosition {
  return { number, listed, hash: Uint8Array.from(Buffer.from(hash, 'hex')) }
}

function packSealedAccess({ revision, digest }: SealedAccess): PackedSealedAccess {
  return { revision, digest: Buffer.from(digest).toString('hex') }
}

function unpackSealedAccess({ revision, digest }: PackedSealedAccess): SealedAccess {
  return { revision, digest: Uint8Array.from(Buffer.from(digest, 'hex')) }
}
