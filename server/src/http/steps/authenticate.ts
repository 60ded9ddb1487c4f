import type { FastifyRequest } from 'fastify'
import type { Principal } from '../../base/access.ts'
import { inProcessCallerOf } from '../connection/in-process-connections.ts'
import type { PipelineOptions } from '../pipeline-options.ts'
import { refuseAmbiguous } from './begin-request.ts'
import { checkOrigin } from './check-origin.ts'

/**
 * Checks the headers, authenticates with `find` where the endpoint requires it, then runs `check`. Calls `done` with the error,
 * if any: synchronously if the key is cached.
 */
export function checkHeadersAndAuthenticate(
  request: FastifyRequest,
  find: (() => Principal | Promise<Principal>) | null,
  check: () => void,
  done: (error?: Error) => void,
): void {
  const refusal = refuseAmbiguous(request.raw)
  if (refusal !== null) {
    done(refusal)
    return
  }
  let found: Principal | Promise<Principal> | null = null
  try {
    found = find === null ? null : find()
    if (!(found instanceof Promise)) enter(found)
  } catch (error) {
    done(error as Error)
    return
  }
  if (found instanceof Promise) found.then(enter).then(() => done(), done)
  else done()

  function enter(principal: Principal | null): void {
    request.principal = principal
    check()
  }
}

/** Returns the API key that a request was sent with. */
export function apiKeyOf({ headers }: FastifyRequest): string | undefined {
  return headers['bt-api-key'] as string | undefined
}

/** Identifies the caller of a request by its key. Throws or rejects with `key_missing`, `key_unknown` or `origin_not_allowed`. */
export function authenticate(
  request: FastifyRequest,
  { access, publicAddress }: Pick<PipelineOptions, 'access' | 'publicAddress'>,
): Principal | Promise<Principal> {
  const found = access.authenticate(apiKeyOf(request), inProcessCallerOf(request.raw.socket))
  return found instanceof Promise ? found.then(ofAllowedOrigin) : ofAllowedOrigin(found)

  function ofAllowedOrigin(principal: Principal): Principal {
    checkOrigin(request, principal, publicAddress)
    return principal
  }
}
