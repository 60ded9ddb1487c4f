import { ServiceError } from '../../base/service-error.ts'
import type { RequestContext } from '../../request/context.ts'
import type { IdempotencyScope } from '../../request/idempotency.ts'
import { queryOf } from '../../request/query.ts'
import type { Answer } from '../../request/response.ts'
import { transactionIdOf, type Endpoint } from '../endpoint.ts'
import type { PipelineState } from '../pipeline-state.ts'

/** Runs the use case; once for each idempotency key, so that later requests get the first successful answer. */
export async function runOrReplay(state: PipelineState): Promise<void> {
  const { idempotency } = state.context
  state.answer = idempotency === null ? await run(state) : await runOnce(state, idempotency)
}

function run({ endpoint, options, context, request, body }: PipelineState): Promise<Answer> {
  return endpoint.handle({
    world: options.world,
    context,
    params: request.params as Readonly<Record<string, string>>,
    query: queryOf(request.url),
    body,
    transactionId: transactionIdOf(endpoint, request.headers),
  })
}

async function runOnce(state: PipelineState, scope: IdempotencyScope): Promise<Answer> {
  const { context, endpoint, options, bytes } = state
  const { access, inFlightKeys } = options
  await access.bindToBody(context, bytes)
  if (inFlightKeys.has(scope.id)) throw new ServiceError('idempotency_in_flight')
  inFlightKeys.add(scope.id)
  try {
    const first = await access.rememberedAnswer(context)
    if (first !== null) {
      recordReplay(endpoint, context)
      return first
    }
    const answer = await run(state)
    // A failed operation is not remembered, so that a retry runs it again.
    if (!scope.remembered && answer.status < 400) await access.remember(context, answer)
    return answer
  } finally {
    inFlightKeys.delete(scope.id)
  }
}

function recordReplay({ permission }: Endpoint, { decisions }: RequestContext): void {
  if (permission === 'any-key' || permission === 'public') return
  decisions.push({ permission, containers: [], allowed: true, by: [], replayed: true })
}
