/**
 * The table of contents: every operation, in the order of docs/interface.md.
 */
import { applicationEndpoints } from './access/endpoints.ts'
import { endpoint, ok, type Endpoint } from './http/endpoint.ts'
import { getLive, getReady } from './http/health.ts'
import { openApiDocument } from './http/openapi.ts'
import { tokenEndpoints } from './tokens/endpoints.ts'
import type { TokenSettings } from './tokens/token-settings.ts'

export interface RouteSettings {
  readonly tokens: TokenSettings
  readonly version: string
  /** Called when an application or a key changed, so that nobody is let in on an old memory. */
  readonly forgetPrincipals: () => void
}

export function routes({ tokens, version, forgetPrincipals }: RouteSettings): Endpoint[] {
  const token = tokenEndpoints(tokens)
  const application = applicationEndpoints(forgetPrincipals)
  const described = [
    token.postTokenize,
    token.postToken,
    token.getToken,
    ...application,
    getLive,
    getReady,
  ]
  const getOpenApi: Endpoint = endpoint({
    method: 'GET',
    path: '/openapi.json',
    summary: 'This document',
    permission: 'public',
    answers: { 200: { description: 'The OpenAPI document.' } },
    handle: async () => ok(document),
  })
  const all = [...described, getOpenApi]
  const document = openApiDocument(all, version)
  return all
}
