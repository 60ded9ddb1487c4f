import { charactersIn, isLongerThan } from '../base/characters.ts'
import { TOKEN_ID_CHARS_MAX, TOKEN_ID_CHARS_MIN } from '../base/limits.ts'

/**
 * Returns the flaw of an id chosen by a caller, or null.
 *
 * Characters that would be misread in a URL or an expression are forbidden; spaces, `@` and `.` are allowed.
 * Source: interface.md, Tokens, Ids.
 */
export function tokenIdFault(id: string): string | null {
  if (charactersIn(id) < TOKEN_ID_CHARS_MIN || isLongerThan(id, TOKEN_ID_CHARS_MAX)) {
    return `The id must have ${TOKEN_ID_CHARS_MIN} to ${TOKEN_ID_CHARS_MAX} characters.`
  }
  if (FORBIDDEN.test(id)) return 'The id must not hold any of # / \\ + ? [ ] | & = % < > { } ^.'
  // Control characters and leading or trailing spaces do not survive headers, URLs and expressions unchanged.
  return CONTROLS.test(id) || id !== id.trim()
    ? 'The id must not hold control characters, nor begin or end with a space.'
    : null
}

const FORBIDDEN = /[#/\\+?[\]|&=%<>{}^]/
// oxlint-disable-next-line no-control-regex -- these are what is looked for
const CONTROLS = /[\u0000-\u001f\u007f-\u009f]/
