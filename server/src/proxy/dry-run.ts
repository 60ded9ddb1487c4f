import { z } from 'zod'
import { hostOf } from '../base/absolute-url.ts'
import { TRANSFORMS, type Decision } from '../base/access.ts'
import type { RequestContext } from '../request/context.ts'
import type { Json, JsonObject } from '../base/json.ts'
import { grantReferenced, type ExpressionLocation } from '../tokens/token-references.ts'
import type { Route } from '../ports/egress.ts'
import type { FoundToken } from '../ports/stored.ts'
import type { BodyExpressions } from './bodies/body-expressions.ts'

export interface DryRunRequest {
  readonly method: string
  readonly route: Route
  /** The destination, as far as the caller may know it. */
  readonly url: string
  /** Names and values, alternating. */
  readonly headers: readonly string[]
  /** Null for a body that is not inspected, and for none. */
  readonly body: BodyExpressions | null
  readonly tokens: readonly FoundToken[]
}

export const dryRunSchema = z
  .object({
    request: z.object({
      method: z.string(),
      url: z.string(),
      headers: z.array(z.object({ name: z.string(), value: z.string() })),
      body: z
        .string()
        .optional()
        .meta({ description: 'With a placeholder for each expression; absent if not inspected.' }),
    }),
    tokens: z.array(
      z.object({
        id: z.string(),
        containers: z.array(z.string()),
        rules: z.array(z.int().min(0)).meta({
          description: 'Priorities of the rules that allow it; 0 for the plain permissions.',
        }),
        transform: z.enum(TRANSFORMS),
      }),
    ),
    destination: z.object({
      host: z.string(),
      rule: z.object({
        name: z.enum(['public', 'allowed']),
        entry: z.string().optional().meta({ description: 'The item of the operator’s list.' }),
      }),
      list: z
        .array(z.string())
        .optional()
        .meta({ description: 'What the application and the tenant both allow; absent for any.' }),
    }),
  })
  .meta({ id: 'DryRun', description: 'The request that would be sent, and why it may be.' })

/**
 * Describes the request that would be sent, and why: a name in place of each expression, the rules that would release each
 * token and how much of it, and the rules that allow the destination.
 *
 * Nothing is opened: neither data nor its length is in the answer, and no filter runs. The use of each token is decided as
 * in a real call, and recorded as a dry run that showed nothing. Throws `permission_missing`.
 */
export function describeDryRun(context: RequestContext, request: DryRunRequest): JsonObject {
  const { method, route, url, headers, body, tokens } = request
  const host = hostOf(route.url)
  const uses = usesOf(context, body?.locations ?? [], tokens, host)
  const internalIds = new Map(tokens.map((it) => [it.id, it.internalId]))
  const shown = body?.outline(({ id }) => `[token ${internalIds.get(id)!}]`).toString()
  const fields: JsonObject[] = []
  for (let at = 0; at < headers.length; at += 2)
    fields.push(shownField(headers[at]!, headers[at + 1]!))
  const { destinations } = context
  return {
    request: { method, url, headers: fields, ...(shown !== undefined && { body: shown }) },
    tokens: uses,
    destination: {
      host,
      rule: { ...route.rule },
      ...(destinations !== null && { list: [...destinations] }),
    },
  }
}

/** Marks the decisions from index `first` on as a dry run in the audit log: nothing is sent because of them. */
export function markDryRun(
  { decisions }: Pick<RequestContext, 'decisions'>,
  first: number,
  more: Pick<Decision, 'transform'> = {},
): void {
  for (let at = first; at < decisions.length; at++) {
    if (decisions[at]!.allowed) decisions[at] = { ...decisions[at]!, ...more, dryRun: true }
  }
}

/** Runs `work`, and marks what it decides. */
export async function asDryRun<Result>(
  context: RequestContext,
  work: () => Promise<Result>,
): Promise<Result> {
  const first = context.decisions.length
  try {
    return await work()
  } finally {
    markDryRun(context, first, { transform: 'redact' })
  }
}

function usesOf(
  context: RequestContext,
  locations: readonly ExpressionLocation[],
  tokens: readonly FoundToken[],
  host: string,
): JsonObject[] {
  const first = context.decisions.length
  try {
    grantReferenced(context, 'proxy:invoke', { locations, tokens }, host)
    return tokens.map((it, at) => renderUse(it, context.decisions[first + at]!))
  } finally {
    markDryRun(context, first, { transform: 'redact' })
  }
}

/** Rules are given by priority; 0 stands for the application's own permissions. */
function renderUse({ id, containers }: FoundToken, { by, transform }: Decision): JsonObject {
  return { id, containers: [...containers], rules: [...by], transform: transform as Json }
}

/** Credentials for other systems are omitted, even for the caller who sent them: this answer is meant to be shared. */
function shownField(name: string, value: string): JsonObject {
  return { name, value: SECRET.test(name) ? '[not shown]' : value }
}

const SECRET = /auth|cookie|credential|key|passw|secret|session|signature|token/i
