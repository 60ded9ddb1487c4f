/** A vault in which tenants run code, and its measurements. */
import type { FastifyInstance } from 'fastify'
import type { JsonObject } from '../src/base/json.ts'

/** Code by what it does: one that behaves, and three that do not. */
const CODE = {
  plain: 'module.exports = async (req) => ({ raw: req.args })',
  loop: 'module.exports = async () => { for (;;); }',
  bomb: 'module.exports = async () => { const all = []; for (;;) all.push(Buffer.alloc(1 << 20, 1)) }',
  flood: `module.exports = async () => { for (;;) console.log('x'.repeat(1 << 16)) }`,
} as const

export interface Reacting {
  /** Ids of reactors of the first tenant, whose key is the subject's. */
  readonly reactors: Readonly<Record<keyof typeof CODE, string>>
  /** Of a token of the first tenant. */
  readonly token: string
  /** Of an application of another tenant. */
  readonly otherKey: string
}

/** Makes the reactors, with a key that may, and a token for them. */
export async function addReactors(
  app: FastifyInstance,
  managementKey: string,
  key: string,
  card: string,
): Promise<Omit<Reacting, 'otherKey'>> {
  const reactors: [name: string, id: string][] = []
  for (const [name, code] of Object.entries(CODE)) {
    const { id } = await post(
      managementKey,
      '/reactors',
      JSON.stringify({ name, code, configuration: { A: 'b' } }),
    )
    reactors.push([name, id as string])
  }
  const { id } = await post(key, '/tokens', card)
  return { reactors: Object.fromEntries(reactors) as Reacting['reactors'], token: id as string }

  async function post(by: string, url: string, payload: string): Promise<JsonObject> {
    const headers = { 'bt-api-key': by, 'content-type': 'application/json' }
    const reply = await app.inject({ method: 'POST', url, headers, payload })
    if (reply.statusCode !== 201) throw new Error(`${url}: ${reply.payload}`)
    return reply.json<JsonObject>()
  }
}
