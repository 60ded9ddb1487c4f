import {
  CALLBACK_JITTER,
  CALLBACK_PAUSE_MS_MAX,
  CALLBACK_RETRIES,
  CALLBACK_RETRY_AFTER_MS_MAX,
} from '../../base/limits.ts'

/**
 * Returns the delay after the `attempts`th attempt, in milliseconds; null if that was the last. It is `firstMs` after the
 * first attempt and doubles each time. `chance` is a random byte; a delay requested by the receiver is a lower bound.
 */
export function pauseAfter(
  attempts: number,
  firstMs: number,
  chance: number,
  retryAfterMs: number | null,
): number | null {
  if (attempts > CALLBACK_RETRIES) return null
  const most = Math.max(CALLBACK_PAUSE_MS_MAX, firstMs)
  const pause = Math.min(firstMs * 2 ** (attempts - 1), most)
  const jittered = pause * (1 + (CALLBACK_JITTER * chance) / 255)
  const asked = Math.min(retryAfterMs ?? 0, CALLBACK_RETRY_AFTER_MS_MAX)
  return Math.round(Math.max(jittered, asked))
}

/** Parses a Retry-After header: seconds, or a date. Returns milliseconds from `now`; null if it is neither. */
export function parseRetryAfter(text: string | undefined, now: number): number | null {
  if (text === undefined) return null
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000
  const at = /^[A-Z][a-z]{2}, /.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(at) ? null : Math.max(0, at - now)
}
