import { createRequire } from 'node:module'
import { SERVICE, type GuestSetUp } from './messages.ts'

const CLIENT = '@basis-theory/basis-theory-js'

/**
 * Returns the code's `bt`: the public client, initialized with `apiKey` for the service itself; null without a key. It
 * loads on first use, because it is large and most code never uses it.
 */
export function openClient(
  apiKey: string | null,
  { packages }: GuestSetUp,
  loading: (name: string, load: () => unknown) => unknown,
): object | null {
  const home = packages[CLIENT]
  if (apiKey === null || home === undefined) return null
  let client: object | null = null
  const open = (): object => load(home, apiKey, loading)
  return new Proxy(
    {},
    {
      get: (_, member) => {
        const it = (client ??= open())
        const value: unknown = Reflect.get(it, member, it)
        return typeof value === 'function' ? value.bind(it) : value
      },
      has: (_, member) => member in (client ??= open()),
    },
  )
}

interface Client {
  init(apiKey: string, options: { apiBaseUrl: string }): Promise<unknown>
}

function load(
  home: string,
  apiKey: string,
  loading: (name: string, load: () => unknown) => unknown,
): object {
  const require = createRequire(`${home}/reactor.js`)
  const { BasisTheory } = loading(CLIENT, () => require(CLIENT)) as {
    BasisTheory: new () => Client
  }
  const client = new BasisTheory()
  // Only the reporting of errors is asynchronous.
  client.init(apiKey, { apiBaseUrl: `http://${SERVICE.host}:${SERVICE.port}` }).catch(() => {})
  return client
}
