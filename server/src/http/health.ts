import { z } from 'zod'
import { endpoint } from './endpoint.ts'
import { ok } from '../request/response.ts'

const health = z
  .object({
    status: z.enum(['ok', 'unavailable']),
    checks: z.record(z.string(), z.string()).optional(),
  })
  .meta({ id: 'Health' })

/** Liveness: restart the process when this does not answer. */
export const getLive = endpoint({
  method: 'GET',
  path: '/health/live',
  summary: 'Whether the process runs',
  permission: 'public',
  answers: { 200: { description: 'It runs.', schema: health } },
  handle: async () => ok({ status: 'ok' }),
})

/** Readiness: send no requests while this answers 503. */
export const getReady = endpoint({
  method: 'GET',
  path: '/health/ready',
  summary: 'Whether requests can be served',
  permission: 'public',
  answers: {
    200: { description: 'Requests can be served.', schema: health },
    503: { description: 'They cannot; `checks` names what is wrong.', schema: health },
  },
  handle: async ({ world }) => {
    try {
      await world.store.check()
      const { guestUser } = world.runner
      const reactors = guestUser === null ? 'off' : USERS[guestUser]
      return ok({ status: 'ok', checks: { store: 'ok', reactors } })
    } catch (error) {
      world.log.error('store_check_failed', error)
      return { status: 503, body: { status: 'unavailable', checks: { store: 'unavailable' } } }
    }
  },
})

/** Whose rights the code of reactors has, by name. */
const USERS = { own: 'own users', service: "the service's user", root: 'root' } as const
