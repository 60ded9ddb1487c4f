import { createRequire } from 'node:module'
import { SERVICE, type GuestSetUp } from './messages.ts'

const CLIENT = '@basis-theory/basis-theory-js'

/**
 * Returns what the code gets as `bt`: the public client, ready to use with `apiKey`, against the service itself;
 * null without a key. It is loaded when the code first uses it: most code never does, and it is large.
 */
export function openClient(apiKey: string | null, { packages }: GuestSetUp): object | null {
  const home = packages[CLIENT]
  if (apiKey === null || home === undefined) return null
  let client: object | null = null
  return new Proxy(
    {},
    {
      get: (_, member) => {
        const it = (client ??= load(home, apiKey))
        const value: unknown = Reflect.get(it, member, it)
        return typeof value === 'function' ? value.bind(it) : value
      },
      has: (_, member) => member in (client ??= load(home, apiKey)),
    },
  )
}

interface Client {
  init(apiKey: string, options: { apiBaseUrl: string }): Promise<unknown>
}

function load(home: string, apiKey: string): object {
  const { BasisTheory }: { BasisTheory: new () => Client } = createRequire(`${home}/reactor.js`)(
    CLIENT,
  )
  const client = new BasisTheory()
  // All but the reporting of errors is done before this returns.
  client.init(apiKey, { apiBaseUrl: `http://${SERVICE.host}:${SERVICE.port}` }).catch(() => {})
  return client
}
