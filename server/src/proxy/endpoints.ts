import type { Endpoint } from '../http/endpoint.ts'
import { streamingEndpoint, type StreamingEndpoint } from '../http/streaming-endpoint.ts'
import type { TokenSettings } from '../tokens/token-settings.ts'
import { forwardRequest } from './forward-request.ts'
import type { ProxySettings } from './proxy-settings.ts'
import { principalWithoutKey } from './proxy-target.ts'

/** The HTTP endpoints of the proxy. */
export function proxyEndpoints(settings: ProxySettings & Pick<TokenSettings, 'privacyShown'>) {
  return {
    postProxy: forwarding('POST'),
    getProxy: forwarding('GET'),
    putProxy: forwarding('PUT'),
    patchProxy: forwarding('PATCH'),
    deleteProxy: forwarding('DELETE'),
  }

  function forwarding(method: Endpoint['method']): StreamingEndpoint {
    return streamingEndpoint({
      method,
      path: '/proxy',
      summary: `Forward a ${method} request, with data in the place of tokens`,
      permission: 'proxy:invoke',
      answers: { 200: { description: 'Whatever the destination answers, with any status.' } },
      withoutKey: principalWithoutKey,
      stream: (it) => forwardRequest(it.world, it.context, it, settings),
    })
  }
}
