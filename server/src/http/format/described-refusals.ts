/**
 * The refusals an operation may answer, by status: those that follow from the fields of its record, because the pipeline enforces
 * them, and those of its use case, which the record names.
 */
import { REFUSALS, type RefusalCode } from '../../base/service-error.ts'
import { acceptsIdempotencyKeys, type Endpoint } from '../endpoint.ts'
import { isStreaming, type StreamingEndpoint } from '../streaming/streaming-endpoint.ts'

export function describedRefusals(
  operation: Endpoint | StreamingEndpoint,
): ReadonlyMap<number, readonly RefusalCode[]> {
  const codes = new Set<RefusalCode>([
    ...EVERYWHERE,
    ...ofCaller(operation),
    ...(isStreaming(operation) ? OF_STREAMS : ofRequest(operation)),
    ...(operation.refusals ?? []),
  ])
  const byStatus = new Map<number, RefusalCode[]>()
  for (const code of [...codes].toSorted()) {
    const { status } = REFUSALS[code]
    byStatus.set(status, [...(byStatus.get(status) ?? []), code])
  }
  return byStatus
}

/** Refusals of the header section, and of bytes that are not well-formed HTTP. */
const EVERYWHERE = [
  'body_invalid',
  'header_duplicated',
  'header_invalid',
  'headers_too_large',
  'expectation_unmet',
] as const satisfies RefusalCode[]

/** A path below is anything, and may be one that cannot be appended. */
const OF_STREAMS = ['route_not_found', 'request_timeout'] as const satisfies RefusalCode[]

function ofCaller({
  permission,
  applicationType,
  plan,
}: Endpoint | StreamingEndpoint): RefusalCode[] {
  if (permission === 'public') return []
  return [
    'key_missing',
    'key_unknown',
    'origin_not_allowed',
    'requests_max',
    'rights_changed',
    'store_unavailable',
    'tenant_busy',
    ...(permission === 'any-key' ? [] : (['permission_missing'] as const)),
    ...(applicationType === undefined ? [] : (['key_type_unfit'] as const)),
    ...(plan === undefined ? [] : (['plan_insufficient'] as const)),
  ]
}

function ofRequest(endpoint: Endpoint): RefusalCode[] {
  const { path, permission, body, query, transactional } = endpoint
  const idempotent = permission !== 'public' && acceptsIdempotencyKeys(endpoint)
  return [
    // An id that cannot be decoded, or is longer than any, matches no path.
    ...(path.includes(':') ? (['route_not_found'] as const) : []),
    ...(body === undefined ? [] : OF_BODIES),
    ...(body === undefined || permission === 'public' ? [] : (['public_body_too_large'] as const)),
    ...(body === undefined || body.optional === true ? [] : (['body_missing'] as const)),
    ...(query === undefined ? [] : (['query_invalid'] as const)),
    ...(idempotent ? (['idempotency_in_flight', 'value_unreadable'] as const) : []),
    ...(transactional === true ? OF_TRANSACTIONS : []),
  ]
}

const OF_BODIES = [
  'body_json_invalid',
  'body_too_large',
  'content_type_unsupported',
  'request_timeout',
] as const satisfies RefusalCode[]

const OF_TRANSACTIONS = [
  'token_locked',
  'transaction_not_found',
  'transaction_committed',
  'transaction_rolled_back',
  'transaction_expired',
  'transaction_full',
] as const satisfies RefusalCode[]
