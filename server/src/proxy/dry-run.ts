import { hostOf } from '../base/absolute-url.ts'
import type { RequestContext, Decision } from '../base/access.ts'
import type { Json, JsonObject } from '../base/json.ts'
import { grantReferenced, type ExpressionLocation } from '../tokens/token-references.ts'
import type { Route } from '../ports/egress.ts'
import type { StoredToken } from '../ports/stored.ts'
import type { ReadBody } from './bodies/read-body.ts'

export interface DryRunRequest {
  readonly method: string
  readonly route: Route
  /** Where it leads, as far as the caller may know. */
  readonly url: string
  /** Names and values in turn. */
  readonly headers: readonly string[]
  /** Null for one that nobody looks into, and for none. */
  readonly body: ReadBody | null
  readonly tokens: readonly StoredToken[]
}

/**
 * Returns what would be sent, and because of what: the request with a name in the place of each expression,
 * which rules would let each token go and how much of it, and what lets anything go to the destination.
 *
 * Nothing is opened for it: neither data nor its length is in the answer, and no filter has seen it. The
 * use of each token is decided as it would be, and recorded as a dry run that showed nothing. Throws
 * `permission_missing`.
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

/** Has the audit log say of what was decided, from the decision at `first` on, that nothing is sent because of it. */
export function markDryRun(
  { decisions }: Pick<RequestContext, 'decisions'>,
  first: number,
  more: Pick<Decision, 'transform'> = {},
): void {
  for (let at = first; at < decisions.length; at++) {
    if (decisions[at]!.allowed) decisions[at] = { ...decisions[at]!, ...more, dryRun: true }
  }
}

function usesOf(
  context: RequestContext,
  locations: readonly ExpressionLocation[],
  tokens: readonly StoredToken[],
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

/** Rules by their priorities; 0 stands for the application's own permissions. */
function renderUse({ id, containers }: StoredToken, { by, transform }: Decision): JsonObject {
  return { id, containers: [...containers], rules: [...by], transform: transform as Json }
}

/** A credential for another system is left out even for those who sent it: this answer is made to be shown around. */
function shownField(name: string, value: string): JsonObject {
  return { name, value: SECRET.test(name) ? '[not shown]' : value }
}

const SECRET = /auth|cookie|credential|key|passw|secret|session|signature|token/i
