/**
 * The composition root: a world and settings in, a running service out.
 *
 * Knows which slices there are and nothing of the technologies beneath; those are chosen in cli/.
 */
import type { FastifyInstance } from 'fastify'
import { mayAnywhere } from './access/authorize.ts'
import { commit, replay } from './access/commit.ts'
import { identifier } from './access/identify.ts'
import { createServer } from './http/server.ts'
import { routes } from './routes.ts'
import type { TokenSettings } from './tokens/token-settings.ts'
import type { World } from './world/world.ts'

export interface AppSettings {
  readonly version: string
  readonly corsOrigins: '*' | readonly string[]
  readonly tokens: TokenSettings
}

export function createApp(world: World, settings: AppSettings): FastifyInstance {
  const { identify, forget } = identifier(world)
  return createServer({
    world,
    corsOrigins: settings.corsOrigins,
    endpoints: routes({
      tokens: settings.tokens,
      version: settings.version,
      forgetPrincipals: forget,
    }),
    doorkeeper: {
      identify,
      mayAnywhere,
      replay: (caller) => replay(world, caller),
      remember: async (caller, answer) => {
        await commit(world, caller, [], answer)
      },
    },
  })
}
