import type { RefusalCode } from '../base/service-error.ts'
import type { Endpoint } from '../http/endpoint.ts'
import { streamingEndpoint, type StreamingEndpoint } from '../http/streaming/streaming-endpoint.ts'
import type { TokenSettings } from '../tokens/token-settings.ts'
import { dryRunSchema } from './dry-run.ts'
import { forwardRequest } from './forward-request.ts'
import type { ProxySettings } from './proxy-settings.ts'
import { principalWithoutKey } from './proxy-target.ts'

/** Source: interface.md, Proxy, errors. */
const REFUSALS = [
  'path_invalid',
  'destination_refused',
  'expression_invalid',
  'detokenize_tokens_unknown',
  'detokenize_tokens_max',
  'answer_too_large',
  'query_invalid',
  'plan_insufficient',
  'proxy_not_found',
  'value_unreadable',
  'destination_timeout',
  'body_too_large',
  'destination_unresolved',
  'destination_unreachable',
  'destination_untrusted',
  'destination_reset',
  'destination_answer_invalid',
] as const satisfies RefusalCode[]

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
      answers: {
        200: {
          description: 'The dry run, or the response of the destination.',
          schema: dryRunSchema,
          foreign: true,
          headers: ['proxyDestinationStatus', 'proxyExpressions'],
        },
        default: {
          description: 'The response of the destination, with any status.',
          foreign: true,
          headers: ['proxyDestinationStatus', 'proxyExpressions'],
        },
      },
      refusals: REFUSALS,
      withoutKey: principalWithoutKey,
      stream: (it) => forwardRequest(it.world, it.context, it, settings),
    })
  }
}
