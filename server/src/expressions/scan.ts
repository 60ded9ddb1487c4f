import { ExpressionError } from './expression-error.ts'

/** A stretch of a template: text as it stands, or what is between two pairs of braces. */
export interface Segment {
  readonly kind: 'text' | 'expression'
  readonly text: string
  /** Where `text` starts, in characters from the start of the template. */
  readonly start: number
}

/**
 * Splits a template into text and expressions, in order; no stretch of text is empty.
 *
 * `{{` opens, the first `}}` after it closes, whatever is between; nothing escapes either. A `}}` that
 * closes nothing is text. Nothing is said about what the braces hold: in masks it is a path, in bodies
 * the id of a token. Each stretch is looked for when it is asked for, so that whoever has enough can stop.
 * Throws `expression_unclosed`.
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
