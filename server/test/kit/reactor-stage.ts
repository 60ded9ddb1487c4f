/** A still vault with a reactor whose behaviour tests set. */
import assert from 'node:assert/strict'
import type { Json, JsonObject } from '../../src/base/json.ts'
import type { Ran, StillRunner } from './still-runner.ts'
import {
  stillVault,
  type Method,
  type Reply,
  type StillVault,
  type StillVaultOptions,
} from './still-vault.ts'

export interface ReactorStage {
  readonly vault: StillVault
  readonly runner: StillRunner
  /** The id of the reactor. */
  readonly id: string
  /** The application it acts for, if any. */
  readonly applicationId: string | undefined
  /** The key of a private application that may create tokens and use them anywhere, unless specified otherwise. */
  readonly key: string
  readonly callerId: string
  /** Invokes it; a string is sent unchanged. */
  readonly react: (body?: Json, key?: string, headers?: Record<string, string>) => Promise<Reply>
  /** Returns the last input of its code. */
  readonly ran: () => Ran
  /** Creates a token and returns its id. */
  readonly token: (data: Json, more?: JsonObject) => Promise<string>
  readonly manage: (method: Method, path: string, body?: Json) => Promise<Reply>
  readonly logs: (query: string) => Promise<{ data: JsonObject[] }>
}

export interface ReactorStageOptions extends StillVaultOptions {
  readonly behave?: StillRunner['behave']
  /** The application the reactor acts for. */
  readonly application?: JsonObject
  /** The application that invokes it. */
  readonly caller?: JsonObject
  readonly configuration?: JsonObject
}

export async function reactorStage(options: ReactorStageOptions = {}): Promise<ReactorStage> {
  const { behave, application, caller, configuration = { SECRET: 'c4nary' } } = options
  const vault = await stillVault(options)
  const { runner } = vault.world
  if (behave !== undefined) runner.behave = behave
  const manage: ReactorStage['manage'] = (method, path, body) =>
    vault.call(method, path, { key: vault.managementKey, ...(body !== undefined && { body }) })

  let applicationId: string | undefined
  if (application !== undefined) {
    const made = await manage('POST', '/applications', {
      name: 'acts',
      type: 'private',
      ...application,
    })
    assert.equal(made.status, 201, made.text)
    applicationId = made.json()['id'] as string
  }
  const made = await manage('POST', '/reactors', {
    name: 'x',
    code: 'module.exports = async (req) => ({ raw: req.args })',
    configuration,
    ...(applicationId !== undefined && { application: { id: applicationId } }),
  })
  assert.equal(made.status, 201, made.text)
  const id = made.json()['id'] as string
  const maker = await vault.keyFor({ permissions: ['token:create'] })
  const key = await vault.keyFor(caller ?? { permissions: ['token:create', 'token:use'] })
  const own = await vault.call('GET', '/applications/key', { key })
  return {
    vault,
    runner,
    id,
    applicationId,
    key,
    callerId: own.json()['id'] as string,
    react: (body, by = key, headers = {}) => {
      const sent = typeof body === 'string' && /^[[{]/.test(body) ? { rawBody: body } : { body }
      const payload = body === undefined ? {} : sent
      return vault.call('POST', `/reactors/${id}/react`, { key: by, headers, ...payload })
    },
    ran: () => runner.ran.at(-1)!,
    token: async (data, more = {}) => {
      const body = { type: 'token', data, ...more }
      const reply = await vault.call('POST', '/tokens', { key: maker, body })
      assert.equal(reply.status, 201, reply.text)
      return reply.json()['id'] as string
    },
    manage,
    logs: async (query) => {
      const reply = await manage('GET', `/logs${query}`)
      assert.equal(reply.status, 200, reply.text)
      return JSON.parse(reply.text) as { data: JsonObject[] }
    },
  }
}
