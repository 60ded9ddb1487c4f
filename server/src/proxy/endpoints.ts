import type { Endpoint } from '../http/endpoint.ts'
import { passage, type PassageEndpoint } from '../http/passage.ts'
import type { TokenSettings } from '../tokens/token-settings.ts'
import { passOn } from './pass-on.ts'
import type { ProxySettings } from './proxy-settings.ts'
import { callerWithoutKey } from './whereto.ts'

/** The HTTP surface of the proxy. */
export function proxyEndpoints(settings: ProxySettings & Pick<TokenSettings, 'privacyShown'>) {
  return {
    postProxy: passing('POST'),
    getProxy: passing('GET'),
    putProxy: passing('PUT'),
    patchProxy: passing('PATCH'),
    deleteProxy: passing('DELETE'),
  }

  function passing(method: Endpoint['method']): PassageEndpoint {
    return passage({
      method,
      path: '/proxy',
      summary: `Pass a ${method} request on, with data in the place of tokens`,
      permission: 'proxy:invoke',
      answers: { 200: { description: 'Whatever the destination answers, with any status.' } },
      withoutKey: callerWithoutKey,
      pass: (it) => passOn(it.world, it.caller, it, settings),
    })
  }
}
