import { authorize } from '../../access/authorize.ts'
import type { RequestContext } from '../../base/access.ts'
import type { FoundProxy } from './find-proxy.ts'

/**
 * Decides whether the caller may have a request forwarded, and records the decision with the host it is for: once for
 * each request, whether it holds tokens or not. Each token that it holds is a question of its own.
 *
 * Whoever calls a proxy that asks for no API key may, and has no right to anything else. Throws
 * `permission_missing`.
 */
export function authorizeInvocation(
  context: RequestContext,
  destination: string,
  proxy: FoundProxy | null,
): void {
  if (proxy === null) authorize(context, 'proxy:invoke', [], destination)
  else if (isAnonymous(context, proxy)) {
    const { id: internalId } = proxy
    const decision = { permission: 'proxy:invoke', containers: [], allowed: true, by: [] } as const
    context.decisions.push({ ...decision, internalId, destination })
  } else {
    const { id } = proxy
    authorize(context, 'proxy:invoke', { id, internalId: id, containers: [] }, destination)
  }
}

/** Whether it is anonymousOf() the proxy who calls. */
export function isAnonymous({ applicationId, keyId }: RequestContext, proxy: FoundProxy): boolean {
  return !proxy.requireAuth && applicationId === proxy.id && keyId === proxy.id
}
