/**
 * What requests expect (`Expect`) besides `100-continue`, which Node knows: nothing else is done here. Node's own
 * refusal has no body and no trace id, so such requests come in like all others, and are refused with them.
 */
import type { IncomingMessage, Server } from 'node:http'
import { ServiceError } from '../base/service-error.ts'

const unmet = new WeakSet<IncomingMessage>()

/** Has requests that expect something else come in, for refuseUnmet() to refuse. */
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
