import type { RequestContext } from '../base/access.ts'

/** Has all that is kept of the answer deleted by the earliest of `ends`, in epoch milliseconds; null for never. */
export function keepUntil(
  { kept }: Pick<RequestContext, 'kept'>,
  ...ends: readonly (number | null)[]
): void {
  if (kept === undefined) return
  for (const end of ends) if (end !== null && end < kept.until) kept.until = end
}
