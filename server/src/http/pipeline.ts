/**
 * The pipeline of most operations: reads the body whole, runs a use case and answers in JSON. Forwarded requests take another,
 * `streaming/streaming-route.ts`.
 */
import type { FastifyInstance } from 'fastify'
import { joinTickBatch } from '../request/tick-batching.ts'
import { isReadOnly, methodsOf, type Endpoint } from './endpoint.ts'
import { PipelineState, type PipelineStep } from './pipeline-state.ts'
import type { PipelineOptions } from './pipeline-options.ts'
import { admit } from './steps/admit.ts'
import { authenticate, checkHeadersAndAuthenticate } from './steps/authenticate.ts'
import { beginRequest } from './steps/begin-request.ts'
import { checkAccess } from './steps/check-access.ts'
import { flushDecisions, flushDecisionsBeforeError } from './steps/flush-decisions.ts'
import { limitRequests } from './steps/limit-requests.ts'
import { makeContext } from './steps/make-context.ts'
import { checkBodyHeaders, parseBytes, readBody } from './steps/read-body.ts'
import { runOrReplay } from './steps/run-or-replay.ts'
import { sendAnswer } from './steps/respond.ts'

/** What happens to a request once its headers are checked and its caller is known, if the endpoint needs one; in this order. */
const STEPS: readonly PipelineStep[] = [
  ({ options }) => joinTickBatch(options.world.clock),
  readBody,
  parseBytes,
  makeContext,
  checkAccess,
  admit,
  runOrReplay,
  ({ context, options }) => flushDecisions(context, options.access),
  ({ options, reply, answer }) => sendAnswer(options, reply, answer!),
]

export function addEndpoint(
  server: FastifyInstance,
  options: PipelineOptions,
  endpoint: Endpoint,
): void {
  const { access } = options
  const { path, permission } = endpoint
  server.route({
    method: methodsOf(endpoint),
    url: path,
    onRequest: (request, reply, done) => {
      request.route = path
      request.readOnly = isReadOnly(endpoint)
      beginRequest(request, reply, options)
      const identify = permission === 'public' ? null : () => authenticate(request, options)
      const check = (): void => {
        limitRequests(request, options)
        checkBodyHeaders(endpoint, request)
      }
      checkHeadersAndAuthenticate(request, identify, check, done)
    },
    handler: async (request, reply) => {
      try {
        const state = new PipelineState(options, endpoint, request, reply)
        for (const step of STEPS) {
          const waiting = step(state)
          if (waiting !== undefined) await waiting
        }
      } catch (error) {
        await flushDecisionsBeforeError(error, request.context, access)
        throw error
      } finally {
        request.quota?.handled()
      }
    },
  })
}
