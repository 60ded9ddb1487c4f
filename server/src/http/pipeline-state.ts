import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Json } from '../base/json.ts'
import { PUBLIC_CONTEXT, type RequestContext } from '../request/context.ts'
import type { Answer } from '../request/response.ts'
import type { Endpoint } from './endpoint.ts'
import type { PipelineOptions } from './pipeline-options.ts'
import { quotaOf, type RequestQuota } from './request-quota.ts'

/** One request at an endpoint, as the steps of the pipeline leave it: each adds what it has found. */
export class PipelineState {
  readonly options: PipelineOptions
  readonly endpoint: Endpoint
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  /** The body as sent; empty if there is none, or if the endpoint does not use it. */
  bytes: Buffer = NO_BODY
  /** Whether the body came after the headers: a client may hold it back. */
  bodyCameLater = false
  body: Json | undefined = undefined
  context: RequestContext = PUBLIC_CONTEXT
  answer: Answer | null = null

  constructor(
    options: PipelineOptions,
    endpoint: Endpoint,
    request: FastifyRequest,
    reply: FastifyReply,
  ) {
    this.options = options
    this.endpoint = endpoint
    this.request = request
    this.reply = reply
  }

  /** The request's use of its tenant's quotas, counted from the first call on. */
  get quota(): RequestQuota {
    return quotaOf(this.request, this.reply.raw, this.options.tenantQuotas)
  }
}

/**
 * One step of the pipeline. Returns undefined if it is done at once, as most are. Throws or rejects to refuse the request: the
 * steps that follow are then left out.
 */
export type PipelineStep = (state: PipelineState) => Promise<void> | undefined | void

const NO_BODY = Buffer.alloc(0)
