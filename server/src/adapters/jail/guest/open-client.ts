import { createRequire } from 'node:module'
import { SERVICE, type GuestSetUp } from './messages.ts'

const CLIENT = '@basis-theory/basis-theory-js'

/**
 * Returns the code's `bt`: the public client, initialized with `apiKey` for the service itself; null without a key. It
 * loads on first use, because it is large and most code never uses it.
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
  // Only the reporting of errors is asynchronous.
  client.init(apiKey, { apiBaseUrl: `http://${SERVICE.host}:${SERVICE.port}` }).catch(() => {})
  return client
}
