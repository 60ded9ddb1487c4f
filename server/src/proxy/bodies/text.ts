import { textOf } from '../../expressions/text.ts'
import {
  readExpression,
  UNWRITABLE,
  type ReplacementSpan,
  type Surroundings,
} from './replacement-span.ts'

/**
 * Finds the expressions of a text as they stand in it. What takes their place is written as it is: nobody
 * knows what language the text is in.
 */
export function findInText(bytes: Buffer, surroundings: Surroundings): ReplacementSpan[] {
  const { encode } = surroundings.charset
  return findBare(bytes, surroundings, (value) => encode(textOf(value, null)))
}

/** As findInText(), in a body that says it is JSON and is not. */
export function findInBrokenJson(bytes: Buffer, surroundings: Surroundings): ReplacementSpan[] {
  const { encode } = surroundings.charset
  const spans = findBare(bytes, surroundings, (value) => {
    const text = textOf(value, null)
    return STRUCTURE.test(text) ? null : encode(text)
  })
  return spans.map((it) => ({ ...it, unwritable: UNWRITABLE_IN_BROKEN_JSON }))
}

const UNWRITABLE_IN_BROKEN_JSON = `${UNWRITABLE}, for the body is not the JSON that it says it is`

/**
 * What could end a string or a value, or begin a comment, to any reader: some take `;` for a comma, `=` for a colon, and what is
 * behind `#` for a comment. Nobody can tell whether an expression in broken JSON
 * stands inside a string, so a value is put there only when it means the same in and out of one.
 */
const STRUCTURE = /["'`\\,;:=#{}[\]\p{Cc}\u2028\u2029]|\/[/*]/u

function findBare(
  bytes: Buffer,
  surroundings: Surroundings,
  write: ReplacementSpan['write'],
): ReplacementSpan[] {
  const spans: ReplacementSpan[] = []
  for (let from = bytes.indexOf('{{'); from >= 0;) {
    const expression = readExpression(bytes, from, surroundings)
    spans.push({ ...expression, from, write })
    from = bytes.indexOf('{{', expression.to)
  }
  return spans
}
