import { hash } from 'node:crypto'
import type { Transform } from '../base/access.ts'
import { readUuid, writeUuid } from '../base/uuid-bytes.ts'
import type { SealedAccess } from './access-state.ts'

/**
 * The audit log: its events, their encoding, and the hash chain.
 *
 * An event is about one operation of one request on one entity type, however many entities: a bulk of ten thousand tokens makes
 * some ten events. It names the initiator, the operation and the time, and never holds data. The encoding never changes, since
 * hashes and checkpoints are computed over it. Decision 0020.
 */
export interface AuditEvent {
  /** Epoch milliseconds. */
  readonly at: number
  readonly applicationId: string
  readonly keyId: string
  readonly traceId: string
  /** Such as `token`, `application_key`. */
  readonly entityType: string
  /** Such as `create`, `read`, `use`. */
  readonly operation: string
  readonly allowed: boolean
  /** Whether the operation changed something; a read or a mere permission does not. */
  readonly changed: boolean
  /** The permission that was checked; empty if none was. */
  readonly permission: string
  /** How much of a token's data was shown; null if it is not about data. */
  readonly shown: Transform | null
  /** Whether an earlier answer was replayed. */
  readonly replayed: boolean
  /** Whether it was a dry run, which sends nothing. */
  readonly dryRun: boolean
  /** The destination host, with its port unless it is the scheme's default. */
  readonly destination: string | null
  /** At most AUDIT_EVENT_ENTITIES_MAX; empty if the operation was about no single entity. */
  readonly entityIds: readonly string[]
}

/** A position in a tenant's chain of events. */
export interface ChainPosition {
  /** Of the event, from 1, without gaps; 0 is before the first. */
  readonly number: number
  /** Number of items up to and including this event: the numbering of lists. */
  readonly listed: number
  /** Over everything up to here; 32 bytes, all zero before the first. */
  readonly hash: Uint8Array
}

export interface StoredAuditEvent extends ChainPosition {
  /** Made by encodeAuditEvent(). */
  readonly entry: Uint8Array
}

/** Attests that a part of the chain is intact, with a proof that only the tenant's keys can make. */
export interface AuditCheckpoint {
  /** The last event removed by retention. */
  readonly removed: ChainPosition
  /** The last event at the time of the checkpoint. */
  readonly last: ChainPosition
  readonly at: number
  /** The access state at that time; null in checkpoints of versions that had none. */
  readonly access: SealedAccess | null
  /** TenantKeys.attest() over all of it. */
  readonly proof: Uint8Array
}

export const CHAIN_START: ChainPosition = { number: 0, listed: 0, hash: new Uint8Array(32) }

/** Returns the position of the last of `events`, if they follow `position`. */
export function positionAfter(
  position: ChainPosition,
  events: readonly AuditEvent[],
): ChainPosition {
  let last = position
  for (const it of events) {
    const { number, listed } = { number: last.number + 1, listed: last.listed + itemCountOf(it) }
    const hash = chainHash(last.hash, { number, listed }, encodeAuditEvent(it))
    last = { number, listed, hash: Uint8Array.from(hash) }
  }
  return last
}

export function isSamePosition(a: ChainPosition | undefined, b: ChainPosition): boolean {
  return (
    a !== undefined &&
    a.number === b.number &&
    a.listed === b.listed &&
    Buffer.compare(a.hash, b.hash) === 0
  )
}

/** Returns the statement that a checkpoint proves. */
export function checkpointStatement(
  tenantId: string,
  { removed, last, at, access }: Omit<AuditCheckpoint, 'proof'>,
): string[] {
  const statement = ['record', tenantId, ...textsOf(removed), ...textsOf(last), String(at)]
  if (access === null) return statement
  const digest = Buffer.from(access.digest).toString('hex')
  return [...statement, 'access', String(access.revision), digest]
}

function textsOf({ number, listed, hash }: ChainPosition): string[] {
  return [String(number), String(listed), Buffer.from(hash).toString('hex')]
}

/**
 * Returns the number of list items of an event: one per entity, or one if it has none.
 *
 * Reads of the audit log are in the audit log, but only in lists that ask for them: otherwise each page read would push the next
 * one further away, and a client that reads pages until one is empty would never come to an end.
 */
export function itemCountOf({
  entityType,
  entityIds,
}: Pick<AuditEvent, 'entityType' | 'entityIds'>): number {
  return itemCount(entityType, entityIds.length)
}

function itemCount(entityType: string, things: number): number {
  return entityType === AUDIT_LOG_ENTITY_TYPE ? 0 : Math.max(1, things)
}

export const AUDIT_LOG_ENTITY_TYPE = 'log'

/**
 * Returns the hash of an event that follows `previous`: SHA-256 over the previous hash, the event's number and its count of items
 * so far (8 bytes each, big-endian), and its bytes.
 */
export function chainHash(
  previous: Uint8Array,
  { number, listed }: Pick<ChainPosition, 'number' | 'listed'>,
  entry: Uint8Array,
): Buffer {
  const length = PREFIX_BYTES + entry.length
  if (hashed.length < length) hashed = Buffer.allocUnsafeSlow(length)
  hashed.set(previous, 0)
  writeWhole(hashed, number, 32)
  writeWhole(hashed, listed, 40)
  hashed.set(entry, PREFIX_BYTES)
  // A binary string takes half the time: bytes allocated outside JavaScript cost more than the hashing.
  return Buffer.from(hash('sha256', hashed.subarray(0, length), 'binary'), 'binary')
}

/** Reused buffer for the hash input. */
let hashed = Buffer.allocUnsafeSlow(1024)

const PREFIX_BYTES = 48

function writeWhole(bytes: Buffer, value: number, at: number): void {
  bytes.writeUInt16BE(0, at)
  bytes.writeUIntBE(value, at + 2, 6)
}

/**
 * Encodes an event: format (1), time (6), flags (1), transform (1), application, key, trace id, entity type, operation,
 * permission, the number of ids (4), ids. A text is its length (2) and UTF-8; a UUID is `ffff` and 16 bytes. Numbers are
 * big-endian.
 *
 * That is format 1. Format 2 is for events with a destination, which comes after the permission; all other events keep format 1.
 * Decision 0026.
 */
export function encodeAuditEvent(event: AuditEvent): Buffer {
  return Buffer.from(writeAuditEvent(event))
}

/** Like encodeAuditEvent(), into a buffer that is valid until the next call: for callers that copy it anyway. */
export function writeAuditEvent(event: AuditEvent): Buffer {
  const { entityIds, destination } = event
  const most = lengthMax(event)
  if (scratch.length < most) scratch = Buffer.allocUnsafeSlow(most)
  const bytes = scratch
  bytes[0] = destination === null ? FORM : FORM_WITH_DESTINATION
  bytes.writeUIntBE(event.at, 1, 6)
  bytes[7] = (event.allowed ? 0 : REFUSED) | (event.replayed ? REPLAYED : 0)
  if (event.changed) bytes[7] |= CHANGED
  if (event.dryRun) bytes[7] |= DRY_RUN
  bytes[8] = SHOWN.indexOf(event.shown)
  let at = 9
  at = lastActor.write(bytes, at, event.applicationId, event.keyId, null)
  at = writeText(bytes, at, event.traceId)
  at = lastKind.write(bytes, at, event.entityType, event.operation, event.permission)
  if (destination !== null) at = writeText(bytes, at, destination)
  at = bytes.writeUInt32BE(entityIds.length, at)
  for (const id of entityIds) at = writeText(bytes, at, id)
  return bytes.subarray(0, at)
}

/** Caches the encoding of the last two or three texts: successive events mostly share them. */
class LastTexts {
  #first: string | null = null
  #second = ''
  #third: string | null = null
  #bytes: Uint8Array = new Uint8Array()

  /** Returns the offset after the texts. */
  write(bytes: Buffer, at: number, first: string, second: string, third: string | null): number {
    if (first === this.#first && second === this.#second && third === this.#third) {
      bytes.set(this.#bytes, at)
      return at + this.#bytes.length
    }
    let end = writeText(bytes, writeText(bytes, at, first), second)
    if (third !== null) end = writeText(bytes, end, third)
    this.#first = first
    this.#second = second
    this.#third = third
    this.#bytes = Uint8Array.from(bytes.subarray(at, end))
    return end
  }
}

const lastActor = new LastTexts()
const lastKind = new LastTexts()

/** Reused buffer: events are far shorter than their maximum, so each is encoded here first. */
let scratch = Buffer.allocUnsafeSlow(1024)

/** Throws if the bytes are no event. */
export function decodeAuditEvent(entry: Uint8Array): AuditEvent {
  const [{ things, items: _items, ...summary }, reader] = read(entry)
  return { ...summary, entityIds: Array.from({ length: things }, () => reader.text()) }
}

/** An event without its entity ids, of which there may be many. */
export interface AuditEventSummary extends Omit<AuditEvent, 'entityIds'> {
  readonly things: number
  /** itemCountOf() the event. */
  readonly items: number
}

/** Throws if the bytes are no event. */
export function decodeAuditEventSummary(entry: Uint8Array): AuditEventSummary {
  return read(entry)[0]
}

function read(entry: Uint8Array): [AuditEventSummary, TextReader] {
  const bytes = Buffer.from(entry.buffer, entry.byteOffset, entry.length)
  const form = bytes[0]
  if (form !== FORM && form !== FORM_WITH_DESTINATION) {
    throw new Error('Cannot read an audit event: its form is not known')
  }
  const flags = bytes[7]!
  const reader = new TextReader(bytes, 9)
  const summary = {
    at: bytes.readUIntBE(1, 6),
    allowed: (flags & REFUSED) === 0,
    replayed: (flags & REPLAYED) !== 0,
    changed: (flags & CHANGED) !== 0,
    dryRun: (flags & DRY_RUN) !== 0,
    shown: SHOWN[bytes[8]!] ?? null,
    applicationId: reader.text(),
    keyId: reader.text(),
    traceId: reader.text(),
    entityType: reader.text(),
    operation: reader.text(),
    permission: reader.text(),
    destination: form === FORM_WITH_DESTINATION ? reader.text() : null,
  }
  const things = reader.count()
  return [{ ...summary, things, items: itemCount(summary.entityType, things) }, reader]
}

/** Returns the time of an event, without decoding the rest; 0 for bytes that are no event. */
export function timeOfAuditEvent(entry: Uint8Array): number {
  if (entry.length < 7) return 0
  return Buffer.from(entry.buffer, entry.byteOffset, entry.length).readUIntBE(1, 6)
}

class TextReader {
  readonly #bytes: Buffer
  #at: number

  constructor(bytes: Buffer, at: number) {
    this.#bytes = bytes
    this.#at = at
  }

  text(): string {
    const length = this.#bytes.readUInt16BE(this.#at)
    const from = this.#at + 2
    this.#at = from + (length === UUID ? 16 : length)
    if (this.#at > this.#bytes.length) throw new RangeError('An audit event is cut short')
    return length === UUID
      ? readUuid(this.#bytes, from)
      : this.#bytes.toString('utf8', from, this.#at)
  }

  count(): number {
    this.#at += 4
    const count = this.#bytes.readUInt32BE(this.#at - 4)
    if (count * 2 > this.#bytes.length) throw new RangeError('An audit event is cut short')
    return count
  }
}

function lengthMax(event: AuditEvent): number {
  const { applicationId, keyId, traceId, entityType, operation, permission, destination } = event
  const { entityIds } = event
  let chars = applicationId.length + keyId.length + traceId.length
  chars += entityType.length + operation.length + permission.length + (destination?.length ?? 0)
  for (const id of entityIds) chars += id.length
  // A UTF-16 code unit takes three bytes at most.
  return 13 + (7 + entityIds.length) * 2 + chars * 3
}

function writeText(bytes: Buffer, at: number, text: string): number {
  if (writeUuid(text, bytes, at + 2)) {
    bytes.writeUInt16BE(UUID, at)
    return at + 18
  }
  const length = bytes.write(text, at + 2, 'utf8')
  if (length >= UUID) throw new RangeError('Cannot record a text that long')
  bytes.writeUInt16BE(length, at)
  return at + 2 + length
}

const FORM = 1
const FORM_WITH_DESTINATION = 2
const REFUSED = 1
const REPLAYED = 2
const CHANGED = 4
const DRY_RUN = 8
const UUID = 0xffff
const SHOWN: readonly (Transform | null)[] = [null, 'redact', 'mask', 'reveal']
