/**
 * A whole vault for tests: the real app over memory stores, a clock that stands still, and a memory of
 * everything that left. No socket is opened.
 */
import type { FastifyInstance } from 'fastify'
import { setUp } from '../../src/access/set-up.ts'
import { FileKeyProvider } from '../../src/adapters/local-keyring/file-key-provider.ts'
import { createApp } from '../../src/app.ts'
import type { Plan } from '../../src/base/access.ts'
import type { Json, JsonObject } from '../../src/base/json.ts'
import type { World } from '../../src/world/world.ts'
import { stillWorld, type StillWorld } from './still-world.ts'

export interface StillVault {
  readonly world: StillWorld
  readonly app: FastifyInstance
  readonly tenantId: string
  /** A management key. */
  readonly managementKey: string
  /** Calls the vault as a client would. */
  readonly call: (method: Method, path: string, options?: CallOptions) => Promise<Reply>
  /** Makes an application and returns its key. */
  readonly keyFor: (application: JsonObject) => Promise<string>
  /** Adds another tenant and returns its management key. */
  readonly addTenant: (name: string, plan?: Plan) => Promise<string>
  readonly close: () => Promise<void>
}

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS'

export interface CallOptions {
  readonly key?: string
  readonly body?: Json
  /** Sent as it is, instead of `body`. */
  readonly rawBody?: string | Buffer
  readonly headers?: Record<string, string>
}

export interface Reply {
  readonly status: number
  readonly headers: Record<string, string>
  readonly text: string
  /** Throws when there is no JSON. */
  readonly json: () => JsonObject
}

export interface StillVaultOptions {
  readonly tokensMax?: number
  readonly privacyShown?: boolean
  readonly corsOrigins?: '*' | readonly string[]
  /** Replaces parts of the world, for example by ones that fail. */
  readonly change?: (world: StillWorld) => World
}
