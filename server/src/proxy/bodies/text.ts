import { textOf } from '../../expressions/text.ts'
import {
  readExpression,
  UNWRITABLE,
  type ReplacementSpan,
  type Surroundings,
} from './replacement-span.ts'

/** Finds the expressions of a text in place. Values are inserted unescaped, because the language of the text is unknown. */
export function findInText(bytes: Buffer, surroundings: Surroundings): ReplacementSpan[] {
  const { encode } = surroundings.charset
  return findBare(bytes, surroundings, (value) => encode(textOf(value, null)))
}

/** Like findInText(), for a body labelled JSON that is not valid JSON. */
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
 * Characters that could end a string or a value, or begin a comment, to any reader: some read `;` as a comma, `=` as a colon,
 * and the text after `#` as a comment. In broken JSON it is undecidable whether an expression stands inside a string, so a
 * value is inserted only if it means the same inside and outside of one.
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
