/**
 * Refuses `Expect` headers other than `100-continue`, which Node handles. Node's own refusal has no body and no trace id, so such
 * requests are let in like all others and refused in the pipeline.
 */
import type { IncomingMessage, Server } from 'node:http'
import { ServiceError } from '../base/service-error.ts'

const unmet = new WeakSet<IncomingMessage>()

/** Lets requests with another expectation in, for refuseUnmet() to refuse. */
export function letExpectationsIn(server: Server): void {
  server.on('checkExpectation', (request, response) => {
    unmet.add(request)
    server.emit('request', request, response)
  })
}

/** Throws `expectation_unmet`. */
export function refuseUnmet(request: IncomingMessage): void {
  if (unmet.has(request)) throw new ServiceError('expectation_unmet')
}
