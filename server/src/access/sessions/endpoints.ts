import { endpoint } from '../../http/endpoint.ts'
import { authorizeSession } from './authorize-session.ts'
import { openSession } from './open-session.ts'
import { authorizeSessionBody, sessionSchema } from './wire.ts'

export const postSessions = endpoint({
  method: 'POST',
  path: '/sessions',
  summary: 'Open a session',
  permission: 'any-key',
  applicationType: 'public',
  idempotent: false,
  answers: { 201: { description: 'The session, without rights yet.', schema: sessionSchema } },
  handle: async ({ world, context }) => await openSession(world, context),
})

export const postSessionsAuthorize = endpoint({
  method: 'POST',
  path: '/sessions/authorize',
  summary: 'Give a session its rights',
  permission: 'any-key',
  applicationType: 'private',
  body: { contentType: 'application/json', schema: authorizeSessionBody },
  answers: { 200: { description: 'It has them.' } },
  refusals: ['session_not_found', 'session_authorized', 'rights_exceeded'],
  handle: async ({ world, context, body }) => await authorizeSession(world, context, body),
})
