import { isStoreOutage } from '../../ports/store-outage.ts'
import type { RequestContext } from '../../request/context.ts'
import type { AccessPort } from '../pipeline-options.ts'

/**
 * Writes every decision of the request to the audit log before any answer leaves. Decision 0020. Returns undefined if all are
 * written already.
 */
export function flushDecisions(
  context: RequestContext,
  access: AccessPort,
): Promise<void> | undefined {
  return context.recorded < context.decisions.length ? access.flushDecisions(context) : undefined
}

/** Like flushDecisions(), when `error` is about to be answered. `context` is null if the request did not get far enough for one. */
export async function flushDecisionsBeforeError(
  error: unknown,
  context: RequestContext | null,
  access: AccessPort,
): Promise<void> {
  // The store is unavailable, so recording fails as well; a second attempt would only take longer.
  if (isStoreOutage(error)) return
  if (context !== null) await flushDecisions(context, access)
}
