/**
 * What is computed from a token's data when it is made: its own id, its fingerprint, its search indexes.
 *
 * All three last as long as the token, so none sees what lasts for an hour: a security code has a thousand values, and
 * whoever may search could ask for each.
 *
 * Source: interface.md, Tokens: ids and aliases, fingerprints, search.
 */
import type { RequestContext } from '../base/access.ts'
import type { Json } from '../base/json.ts'
import { Sensitive } from '../base/sensitive.ts'
import { ServiceError } from '../base/service-error.ts'
import { FilterError, within } from '../expressions/expression-error.ts'
import { evaluateMask } from '../expressions/mask.ts'
import { evaluateText, type EvaluationContext, type Template } from '../expressions/template.ts'
import type { TenantKeys } from '../ports/keyring.ts'
import type { Draft } from './draft.ts'
import { withoutShortLived } from './sealing.ts'
import { tokenIdFault } from './token-id.ts'

/** Whether a token made from `draft` takes the place of a duplicate that is there already. */
export function deduplicates(draft: Draft, { settings }: RequestContext): boolean {
  return draft.options.deduplicate ?? settings.deduplicateTokens
}

/** Whether anybody asked for a fingerprint: they cost as much as the encryption of a short value. */
function wantsFingerprint(draft: Draft, context: RequestContext): boolean {
  return (
    draft.options.fingerprintAsked ||
    context.settings.fingerprintTokens ||
    deduplicates(draft, context)
  )
}

/** Returns the fingerprint of `draft`, or null when none was asked for or its expression gives nothing. */
export function fingerprintOf(
  keys: TenantKeys,
  context: RequestContext,
  draft: Draft,
  evaluationContext: EvaluationContext,
): string | null {
  if (!wantsFingerprint(draft, context)) return null
  const text = evaluate(
    draft,
    draft.options.fingerprint,
    'fingerprint_expression',
    evaluationContext,
  )
  return text === null || text === ''
    ? null
    : keys.fingerprint(draft.options.fingerprintScope, new Sensitive(text))
}

/**
 * Returns the keyed hashes by which `draft` can be found; throws when an expression gives nothing, or with `lenient`
 * leaves it out.
 */
export function indexesOf(
  keys: TenantKeys,
  draft: Draft,
  evaluationContext: EvaluationContext,
  lenient = false,
): Uint8Array[] {
  const { searchIndexes } = draft.options
  if (searchIndexes.length === 0) return NO_INDEXES
  const values = new Set<string>()
  for (const [at, template] of searchIndexes.entries()) {
    const member = `search_indexes[${at}]`
    const text = evaluate(draft, template, member, evaluationContext)
    if (text !== null && text !== '') values.add(text)
    else if (!lenient) throw invalid(draft, member, 'It gives no value for this data.')
  }
  return [...values].map((value) => keys.index(new Sensitive(value)))
}

const NO_INDEXES: Uint8Array[] = []

/** Returns the id that the alias expression of `draft` gives; each call draws anew. */
export function aliasOf(
  draft: Draft,
  alias: Template,
  evaluationContext: EvaluationContext,
): string {
  const id = evaluate(draft, alias, 'id', evaluationContext) ?? ''
  const fault = tokenIdFault(id)
  if (fault !== null) throw invalid(draft, 'id', `Its value is not a valid id. ${fault}`)
  return id
}

/**
 * Returns the evaluated mask of `draft`, undefined when it has none.
 *
 * Throws when it cannot be evaluated, unless it `closes`, as it does for readers.
 */
export function maskedDataOf(
  draft: Draft,
  evaluationContext: EvaluationContext,
  closes: boolean,
): Json | undefined {
  const { mask } = draft.options
  if (mask === null) return undefined
  return orInvalid(draft, 'mask', () =>
    evaluateMask(
      mask,
      { ...evaluationContext, variables: { data: draft.data.reveal() } },
      closes ? 'close' : 'throw',
    ),
  )
}

function evaluate(
  draft: Draft,
  template: Template,
  member: string,
  evaluationContext: EvaluationContext,
): string | null {
  const data = withoutShortLived(draft).data.reveal()
  const variables =
    member === 'fingerprint_expression'
      ? { data, metadata: { ...draft.options.metadata } }
      : { data }
  return orInvalid(draft, member, () => evaluateText(template, { ...evaluationContext, variables }))
}

function orInvalid<Value>(draft: Draft, member: string, work: () => Value): Value {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof FilterError)) throw error
    throw invalid(draft, within(member, error.member), error.message)
  }
}

function invalid(draft: Draft, member: string, message: string): ServiceError {
  return new ServiceError('expression_invalid', { [draft.pathOf(member)]: [message] })
}
