import type { InProcessCaller, Principal } from '../../base/access.ts'
import type { World } from '../../ports/world.ts'
import type { Operation } from '../endpoint.ts'
import type { StreamingRequest } from '../../request/streaming.ts'
import type { Answer } from '../../request/response.ts'

/**
 * One operation that forwards requests as they come: any body, of any size and type, unparsed, and any path below its own. The
 * response is the destination's, written as it comes.
 *
 * It ignores idempotency keys, and every error is rendered as the proxy's own.
 */
export interface StreamingEndpoint extends Operation {
  /**
   * Returns the principal of a request without a key; null refuses it. Such a caller needs no permission on admission: `stream`
   * decides what it may do. `inProcessCaller` is the code that calls, see AccessPort.
   */
  readonly withoutKey?: (
    world: World,
    asked: Pick<StreamingRequest, 'targetBelowPath' | 'headers'> & {
      readonly inProcessCaller: InProcessCaller | null
    },
  ) => Promise<Principal | null>
  /**
   * Resolves when the response is written, or with an answer of our own. An error thrown before
   * `reply.begin` becomes an error response; a later one breaks off the connection.
   */
  readonly stream: (request: StreamingRequest) => Promise<Answer | undefined>
}

export function isStreaming(operation: Operation): operation is StreamingEndpoint {
  return 'stream' in operation
}

/** Types a streaming endpoint's record, so that it is checked where it is written. */
export function streamingEndpoint(record: StreamingEndpoint): StreamingEndpoint {
  return record
}
