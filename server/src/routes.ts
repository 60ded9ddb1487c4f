/** The list of all operations, in the order of docs/interface.md. */
import { z } from 'zod'
import * as applications from './access/applications/endpoints.ts'
import * as sessions from './access/sessions/endpoints.ts'
import type { EphemeralKeys } from './access/ephemeral-keys.ts'
import { fieldEndpoints } from './fields/endpoints.ts'
import type { FieldBuilds } from './fields/field-builds.ts'
import { documentationEndpoints } from './http/documentation.ts'
import { endpoint, type Endpoint } from './http/endpoint.ts'
import { getLive, getReady } from './http/health.ts'
import { openApiDocument } from './http/format/openapi.ts'
import type { StreamingEndpoint } from './http/streaming/streaming-endpoint.ts'
import * as proxies from './proxy/configured/endpoints.ts'
import { proxyEndpoints } from './proxy/endpoints.ts'
import type { ProxySettings } from './proxy/proxy-settings.ts'
import { callbackEndpoints } from './reactors/callbacks/endpoints.ts'
import { reactorEndpoints } from './reactors/endpoints.ts'
import type { JobStorage } from './reactors/jobs/job-storage.ts'
import type { ReactorSettings } from './reactors/reactor-settings.ts'
import * as audit from './audit/endpoints.ts'
import * as tenants from './tenants/endpoints.ts'
import { tokenEndpoints } from './tokens/endpoints.ts'
import type { TokenSettings } from './tokens/token-settings.ts'
import { transactionEndpoints } from './transactions/endpoints.ts'
import type { TransactionSettings } from './transactions/transaction-settings.ts'

export interface RouteSettings {
  readonly fieldBuilds: FieldBuilds
  readonly tokens: TokenSettings
  readonly transactions: TransactionSettings
  readonly proxy: ProxySettings
  readonly reactors: ReactorSettings
  readonly version: string
}

/** Objects that the operations share with other parts of the service. */
export interface RouteDependencies {
  /** Used by authentication, too. */
  readonly ephemeralKeys: EphemeralKeys
  /** Used by the worker, too. */
  readonly storage: JobStorage
  /** Called when an invocation or a callback is ready to run. */
  readonly wake: () => void
}

export function routes(
  { fieldBuilds, tokens, transactions, proxy, reactors, version }: RouteSettings,
  { ephemeralKeys, storage, wake }: RouteDependencies,
): (Endpoint | StreamingEndpoint)[] {
  const token = tokenEndpoints(tokens)
  const transaction = transactionEndpoints(transactions)
  const forwarding = proxyEndpoints({ ...proxy, privacyShown: tokens.privacyShown })
  const reactor = reactorEndpoints(reactors, { tokens, ephemeralKeys, storage, wake })
  const callback = callbackEndpoints(wake)
  const documentation = documentationEndpoints(version)
  const described = [
    token.postTokenize,

    token.postToken,
    token.getTokens,
    token.getToken,
    token.postSearch,
    token.getTokensV2,
    token.postSearchV2,
    token.postDetokenize,

    token.patchToken,
    token.deleteToken,

    transaction.postTransaction,
    transaction.postCommit,
    transaction.postRollback,

    forwarding.postProxy,
    forwarding.getProxy,
    forwarding.putProxy,
    forwarding.patchProxy,
    forwarding.deleteProxy,

    proxies.postProxies,
    proxies.getProxies,
    proxies.getProxyById,
    proxies.putProxyById,
    proxies.patchProxyById,
    proxies.deleteProxyById,

    reactor.postReactors,
    reactor.getReactors,
    reactor.getReactor,
    reactor.putReactor,
    reactor.patchReactor,
    reactor.deleteReactor,
    reactor.postReact,
    reactor.postReactAsync,
    reactor.getResult,

    callback.getCallbacks,
    callback.postReplay,
    callback.getCallbackSecret,
    callback.postCallbackSecret,

    applications.postApplications,
    applications.getApplications,
    applications.getApplicationByKey,
    applications.getApplicationById,
    applications.putApplication,
    applications.deleteApplicationById,
    applications.postRegenerate,
    applications.postApplicationKeys,
    applications.getApplicationKeys,
    applications.getApplicationKeyById,
    applications.deleteApplicationKeyById,
    applications.getPermissions,
    applications.getApplicationTemplates,
    applications.getApplicationTemplateById,

    sessions.postSessions,
    sessions.postSessionsAuthorize,

    tenants.getTenantSelf,
    tenants.putTenantSelf,
    tenants.deleteTenantSelf,
    tenants.getUsageReport,
    tenants.getMembers,
    tenants.getInvitations,

    audit.getLogs,
    audit.getLogEntityTypes,

    ...fieldEndpoints(fieldBuilds),

    getLive,
    getReady,

    documentation.getHome,
    documentation.getPage,
    documentation.getOperatingPage,
  ]
  const all: (Endpoint | StreamingEndpoint)[] = [...described, openApiEndpoint(version, () => all)]
  return all
}

/** Describes `endpoints`, itself included. */
function openApiEndpoint(
  version: string,
  endpoints: () => readonly (Endpoint | StreamingEndpoint)[],
): Endpoint {
  // Rendered once, since any client may request it any number of times; and on first use, since most vaults are never asked.
  let bytes: Promise<Buffer> | undefined
  return endpoint({
    method: 'GET',
    path: '/openapi.json',
    summary: 'This document',
    permission: 'public',
    answers: { 200: { description: 'The OpenAPI document.', schema: z.looseObject({}) } },
    handle: async ({ world }) => {
      bytes ??= openApiDocument(endpoints(), version, world.clock).then((it) =>
        Buffer.from(JSON.stringify(it)),
      )
      return { status: 200, bytes: await bytes }
    },
  })
}
