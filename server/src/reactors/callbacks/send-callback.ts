import {
  CALLBACK_ANSWER_BYTES_MAX,
  CALLBACK_ANSWER_MS_MAX,
  CALLBACK_TIMEOUT_MS,
} from '../../base/limits.ts'
import { EgressFailure, EgressRefusal, senderOf } from '../../ports/egress.ts'
import type { World } from '../../ports/world.ts'
import { parseRetryAfter } from './schedule.ts'

/** The outcome of a delivery attempt. */
export type DeliveryOutcome =
  | { readonly kind: 'acknowledged' }
  /** The receiver wants no further attempts. */
  | { readonly kind: 'gone'; readonly failure: string }
  | {
      readonly kind: 'failed'
      readonly failure: string
      readonly retryAfterMs: number | null
      /** What the egress gateway reported; absent if there was a response. */
      readonly error?: Error
    }

export interface Delivery {
  readonly url: URL
  /** The allowed destinations; null for all that the egress gateway permits. */
  readonly destinations: readonly string[] | null
  /** Names and values, alternating. */
  readonly headers: readonly string[]
  readonly body: string | Buffer
}

/**
 * Sends a result once, under the current rules of the egress gateway, and returns the outcome. The response's header section
 * decides; a redirect is not followed and counts as a failure.
 *
 * When it returns, the response is complete or its connection is dropped, so that as many connections are in use as deliveries.
 * Decision 0088.
 */
export async function sendCallback(
  { clock, egress }: Pick<World, 'clock' | 'egress'>,
  tenantId: string,
  { url, destinations, headers, body }: Delivery,
): Promise<DeliveryOutcome> {
  const outcome = Promise.withResolvers<DeliveryOutcome>()
  try {
    const route = await egress.vet(senderOf(tenantId), url, destinations)
    let read = 0
    let complete = false
    const request = {
      method: 'POST',
      headers,
      body: typeof body === 'string' ? Buffer.from(body) : body,
      timeoutMs: CALLBACK_TIMEOUT_MS,
    }
    const call = egress.send(route, request, {
      headerSection: (status, _reason, theirs) =>
        outcome.resolve(outcomeOf(status, theirs, clock.now())),
      data: (chunk) => {
        read += chunk.length
        if (read > CALLBACK_ANSWER_BYTES_MAX) call.abort()
        return true
      },
      end: () => void (complete = true),
    })
    call.done.catch(outcome.reject)
    const found = await outcome.promise
    if (!complete) {
      await Promise.race([call.done.catch(() => {}), clock.after(CALLBACK_ANSWER_MS_MAX)])
      call.abort()
    }
    return found
  } catch (error) {
    return { kind: 'failed', ...failureOf(error), retryAfterMs: null }
  }
}

function outcomeOf(status: number, headers: readonly string[], now: number): DeliveryOutcome {
  if (status >= 200 && status < 300) return { kind: 'acknowledged' }
  const failure = `status ${status}`
  if (status === 410) return { kind: 'gone', failure }
  const asks = status === 429 || status === 503
  const at = asks ? headers.findIndex((it, n) => n % 2 === 0 && /^retry-after$/i.test(it)) : -1
  const retryAfterMs = at < 0 ? null : parseRetryAfter(headers[at + 1], now)
  return { kind: 'failed', failure, retryAfterMs }
}

function failureOf(error: unknown): { readonly failure: string; readonly error: Error } {
  if (error instanceof EgressRefusal) return { failure: `refused: ${error.rule}`, error }
  if (error instanceof EgressFailure) return { failure: error.fault, error }
  throw error
}
