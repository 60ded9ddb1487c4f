/** The seal of a record as text, for stores to keep. */
import { RECORD_BEGIN, type RecordPoint, type RecordSeal } from './record.ts'

/** Returns a seal as the text that is kept of it. */
export function packSeal({ removed, last, at, proof }: RecordSeal): string {
  const packed: PackedSeal = {
    removed: packPoint(removed),
    last: packPoint(last),
    at,
    proof: Buffer.from(proof).toString('base64'),
  }
  return JSON.stringify(packed)
}

interface PackedSeal {
  readonly removed: PackedPoint
  readonly last: PackedPoint
  readonly at: number
  readonly proof: string
}

interface PackedPoint {
  readonly number: number
  readonly listed: number
  readonly hash: string
}

/** A text that packSeal() did not make is a seal that proves nothing. */
export function unpackSeal(text: string): RecordSeal {
  try {
    const { removed, last, at, proof } = JSON.parse(text) as PackedSeal
    return {
      removed: unpackPoint(removed),
      last: unpackPoint(last),
      at,
      proof: Uint8Array.from(Buffer.from(proof, 'base64')),
    }
  } catch {
    return { removed: RECORD_BEGIN, last: RECORD_BEGIN, at: 0, proof: new Uint8Array() }
  }
}

function packPoint({ number, listed, hash }: RecordPoint): PackedPoint {
  return { number, listed, hash: Buffer.from(hash).toString('hex') }
}

function unpackPoint({ number, listed, hash }: PackedPoint): RecordPoint {
  return { number, listed, hash: Uint8Array.from(Buffer.from(hash, 'hex')) }
}
