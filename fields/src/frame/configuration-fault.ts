/** Validates the configuration that a page sends to an iframe: its scripts may send anything. */
import { BRANDS } from '../card/brands.ts'
import { keyHashOf } from '../protocol/key-hash.ts'
import { COLOR_SCHEMES, FIELD_NAMES, type Configuration } from '../protocol/messages.ts'
import { styleFault } from '../protocol/style-rules.ts'

/** Ours, for the label of a text field. */
const LABEL_CHARS_MAX = 200

/** Returns the fault of `configuration` in a sentence, or null. */
export async function configurationFault(configuration: Configuration): Promise<string | null> {
  const { publicKey, locale, colorScheme, styles } = configuration
  if (typeof publicKey !== 'string') return 'The public key is missing.'
  // The document, its frame-ancestors and its allowed origins belong to one key, whose hash is in the URL.
  if ((await keyHashOf(publicKey)) !== location.pathname.split('/').at(-1)) {
    return 'The fields were mounted with another public key. Mount them again.'
  }
  if (typeof locale !== 'string') return 'The locale must be a string.'
  if (!isOneOf(COLOR_SCHEMES, colorScheme)) {
    return `The color scheme must be one of ${COLOR_SCHEMES.join(', ')}.`
  }
  return styleFault(styles) ?? roleFault(configuration)
}

function roleFault(configuration: Configuration): string | null {
  switch (configuration.role) {
    case 'card':
      return cardFault(configuration)
    case 'coordinator':
      return typeof configuration.group === 'string' ? null : 'The group must be a string.'
    case 'text':
      return textFault(configuration)
    case 'reveal':
      return null
    default:
      return 'The role is unknown.'
  }
}

function cardFault({
  fields,
  brands,
  group,
}: Extract<Configuration, { role: 'card' }>): string | null {
  const named = Array.isArray(fields) && fields.length > 0
  if (!named || !fields.every((it) => isOneOf(FIELD_NAMES, it))) {
    return `Fields must be some of ${FIELD_NAMES.join(', ')}.`
  }
  if (new Set(fields).size < fields.length) return 'List each field only once.'
  if (brands !== null && !(Array.isArray(brands) && brands.every((it) => isOneOf(BRANDS, it)))) {
    return `Brands must be some of ${BRANDS.join(', ')}.`
  }
  return group === null || typeof group === 'string' ? null : 'The group must be a string.'
}

function textFault({ label, tokenType }: Extract<Configuration, { role: 'text' }>): string | null {
  if (typeof label !== 'string' || label.trim() === '' || label.length > LABEL_CHARS_MAX) {
    return `A text field needs a label of at most ${LABEL_CHARS_MAX} characters.`
  }
  return typeof tokenType === 'string' ? null : 'The token type must be a string.'
}

function isOneOf(known: readonly unknown[], value: unknown): boolean {
  return known.includes(value)
}
