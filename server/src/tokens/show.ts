/**
 * Shows a token's data to a caller: nothing, the evaluated mask, or all of it.
 *
 * Source: interface.md, Access, transforms.
 */
import type { Transform } from '../base/access.ts'
import type { Json } from '../base/json.ts'
import type { Sensitive } from '../base/sensitive.ts'
import { ExpressionError } from '../expressions/expression-error.ts'
import { evaluateMask, parseDefaultMask, parseMask, type Mask } from '../expressions/mask.ts'
import type { EvaluationContext } from '../expressions/template.ts'
import type { FoundToken } from '../ports/stored.ts'
import { maskOf } from './wire.ts'

/**
 * Returns the `data` member for a reader, undefined if it is to be omitted.
 *
 * The mask is evaluated on each read, over the current data. A leaf whose expression fails is masked fully: data that
 * cannot be masked as requested is not shown.
 */
export function shownData(
  token: FoundToken,
  data: Sensitive<Json>,
  transform: Transform,
  evaluationContext: EvaluationContext,
): Json | undefined {
  if (transform === 'redact') return undefined
  if (transform === 'reveal') return data.reveal()
  const mask = parsedMaskOf(token)
  if (mask === null) return undefined
  const variables = { data: data.reveal() }
  return evaluateMask(mask, { ...evaluationContext, variables }, 'close')
}

/** Returns null if the token has no valid mask: earlier versions accepted masks that this one does not. */
function parsedMaskOf(token: FoundToken): Mask | null {
  const mask = maskOf(token)
  if (mask === null) return null
  try {
    return token.details?.['mask'] === undefined ? parseDefaultMask(mask) : parseMask(mask)
  } catch (error) {
    if (error instanceof ExpressionError) return null
    throw error
  }
}
