/**
 * The composition root: builds a running service from a world and settings.
 *
 * It knows all modules, but not the technologies beneath; cli/ chooses those.
 */
import { mayAnywhere } from './access/authorize.ts'
import { permissionMissing } from './access/permission-missing.ts'
import { commit } from './request/commit.ts'
import { bindToBody, rememberedAnswer } from './request/idempotency.ts'
import { createIdentities } from './access/authenticate.ts'
import { keysOfTenants } from './access/keys-of-tenants.ts'
import { EphemeralKeys } from './access/ephemeral-keys.ts'
import { ReadThrottle } from './base/read-throttle.ts'
import { ConnectionThrottle } from './http/connection/connection-throttle.ts'
import type { PublicAddress } from './http/format/public-address.ts'
import type { RequestLimitSettings } from './http/request-limits.ts'
import { createServer, type Server } from './http/server.ts'
import { JobStorage } from './reactors/jobs/job-storage.ts'
import { JobWorker } from './reactors/jobs/worker.ts'
import { routes, type RouteSettings } from './routes.ts'
import type { World } from './ports/world.ts'

export interface AppSettings extends RouteSettings {
  readonly corsOrigins: '*' | readonly string[]
  readonly publicAddress: PublicAddress
  readonly requestLimits: RequestLimitSettings
  /** The pause before the first retry of a callback, in milliseconds. */
  readonly callbackRetryBaseMs: number
}

/** The server, and the worker for asynchronous invocations; the owner of one also runs the other. */
export type App = Server & { readonly jobs: JobWorker }

export function createApp(outside: World, settings: AppSettings): App {
  const ephemeralKeys = new EphemeralKeys()
  const keyring = keysOfTenants(outside)
  const identities = createIdentities({ ...outside, keyring }, ephemeralKeys)
  const world: World = { ...outside, store: identities.store, keyring }
  const storage = new JobStorage(world, settings.reactors.jobStorageBytesMax)
  const jobs = new JobWorker(world, {
    ephemeralKeys,
    storage,
    tokens: settings.tokens,
    responseHeaders: settings.reactors.responseHeaders,
    product: `Symbolon/${settings.version}`,
    retryBaseMs: settings.callbackRetryBaseMs,
  })
  const server = createServer({
    world,
    connectionThrottle: new ConnectionThrottle(world.clock, new ReadThrottle(world.clock)),
    corsOrigins: settings.corsOrigins,
    publicAddress: settings.publicAddress,
    requestLimits: settings.requestLimits,
    endpoints: routes(settings, { ephemeralKeys, storage, wake: () => jobs.onWork() }),
    access: {
      authenticate: identities.authenticate.bind(identities),
      mayAnywhere,
      permissionMissing,
      bindToBody: (context, body) => bindToBody(world, context, body),
      rememberedAnswer: (context) => rememberedAnswer(world, context),
      remember: async (context, answer) => {
        await commit(world, context, [], answer)
      },
      flushDecisions: async (context) => {
        await commit(world, context, [])
      },
    },
  })
  return Object.assign(server, { jobs })
}
