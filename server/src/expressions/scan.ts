import { ExpressionError } from './expression-error.ts'

/** A segment of a template: literal text, or the text between two pairs of braces. */
export interface Segment {
  readonly kind: 'text' | 'expression'
  readonly text: string
  /** Where `text` starts, in characters from the start of the template. */
  readonly start: number
}

/**
 * Splits a template into text and expressions, in order; text segments are never empty.
 *
 * `{{` opens an expression and the first `}}` after it closes it; neither can be escaped. A `}}` without an opening is text.
 * The content of the braces is not interpreted: in masks it is a path, in bodies the id of a token. Segments are produced
 * lazily, so that the consumer can stop early. Throws `expression_unclosed`.
 */
export function* scan(template: string): Generator<Segment, void> {
  let position = 0
  for (;;) {
    const opened = template.indexOf('{{', position)
    const end = opened < 0 ? template.length : opened
    if (end > position) {
      yield { kind: 'text', text: template.slice(position, end), start: position }
    }
    if (opened < 0) return
    const closed = template.indexOf('}}', opened + 2)
    if (closed < 0) throw new ExpressionError('expression_unclosed', opened)
    const start = opened + 2
    yield { kind: 'expression', text: template.slice(start, closed), start }
    position = closed + 2
  }
}
