import { authorize } from '../../access/authorize.ts'
import type { RequestContext } from '../../request/context.ts'
import type { FoundProxy } from './find-proxy.ts'

/**
 * Decides whether the caller may have a request forwarded, and records the decision with the destination host: once per
 * request, with or without tokens. Each token in it is decided separately.
 *
 * Anonymous callers may invoke a proxy that requires no API key, and have no other permission. Throws `permission_missing`.
 */
export function authorizeProxyInvocation(
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

/** Whether the caller is anonymousOf() the proxy. */
export function isAnonymous({ applicationId, keyId }: RequestContext, proxy: FoundProxy): boolean {
  return !proxy.requireAuth && applicationId === proxy.id && keyId === proxy.id
}
