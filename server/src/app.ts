/**
 * The composition root: a world and settings in, a running service out.
 *
 * Knows which slices there are and nothing of the technologies beneath; those are chosen in cli/.
 */
import { mayAnywhere } from './access/authorize.ts'
import { commit, replay } from './access/commit.ts'
import { identifier } from './access/identify.ts'
import { keysOfTenants } from './access/keys-of-tenants.ts'
import { LentKeys } from './access/lent-keys.ts'
import { createServer, type Server } from './http/server.ts'
import { routes, type RouteSettings } from './routes.ts'
import type { World } from './world/world.ts'

export interface AppSettings extends RouteSettings {
  readonly corsOrigins: '*' | readonly string[]
}

export function createApp(outside: World, settings: AppSettings): Server {
  const lentKeys = new LentKeys()
  const identities = identifier(outside, lentKeys)
  const world: World = { ...outside, store: identities.store, keyring: keysOfTenants(outside) }
  return createServer({
    world,
    corsOrigins: settings.corsOrigins,
    endpoints: routes(settings, lentKeys),
    doorkeeper: {
      identify: identities.identify.bind(identities),
      mayAnywhere,
      replay: (caller) => replay(world, caller),
      remember: async (caller, answer) => {
        await commit(world, caller, [], answer)
      },
      record: async (caller) => {
        await commit(world, caller, [])
      },
    },
  })
}
