/** How a page may change the looks of its fields: a closed list of properties of a closed list of parts. */

export const STYLE_PROPERTIES = [
  'background-color',
  'border',
  'border-bottom',
  'border-color',
  'border-radius',
  'border-style',
  'border-width',
  'box-shadow',
  'color',
  'caret-color',
  'column-gap',
  'font-family',
  'font-size',
  'font-style',
  'font-variant-numeric',
  'font-weight',
  'letter-spacing',
  'line-height',
  'margin-bottom',
  'margin-left',
  'margin-right',
  'margin-top',
  'min-height',
  'outline',
  'outline-offset',
  'padding',
  'row-gap',
  'text-align',
  'text-transform',
] as const
export type StyleProperty = (typeof STYLE_PROPERTIES)[number]

/** The parts, with the selector that each stands for in the iframe. */
export const STYLE_PARTS = {
  form: 'form',
  label: '.label',
  'label:focus': '.field:focus-within .label',
  'label:invalid': '.invalid .label',
  input: '.input',
  'input:hover': '.input:hover',
  'input:focus': '.input:focus',
  'input:complete': '.complete .input',
  'input:invalid': '.invalid .input',
  'input::placeholder': '.input::placeholder',
  error: '.error',
  brand: '.brand',
  card: '.card',
  value: '.value',
  button: '.button',
  'button:hover': '.button:hover',
  'button:focus': '.button:focus-visible',
} as const
export type StylePart = keyof typeof STYLE_PARTS

export type StyleRules = Readonly<
  Partial<Record<StylePart, Readonly<Partial<Record<StyleProperty, string>>>>>
>

const VALUE_CHARS_MAX = 200

/**
 * Returns the flaw of `rules` in a sentence, or null. Values may load nothing and refer to nothing: no `url()`, no `var()`.
 *
 * Example: `{ input: { color: '#222' } }` is fine.
 */
export function styleFault(rules: unknown): string | null {
  if (typeof rules !== 'object' || rules === null || Array.isArray(rules))
    return 'Styles must be an object.'
  for (const [part, properties] of Object.entries(rules)) {
    if (!Object.hasOwn(STYLE_PARTS, part)) {
      return `Styles have no part "${part}". Use ${Object.keys(STYLE_PARTS).join(', ')}.`
    }
    if (typeof properties !== 'object' || properties === null) {
      return `The style of "${part}" must be an object.`
    }
    for (const [property, value] of Object.entries(properties as object)) {
      if (!(STYLE_PROPERTIES as readonly string[]).includes(property)) {
        return `"${property}" cannot be set. Use ${STYLE_PROPERTIES.join(', ')}.`
      }
      if (!isPlainValue(value)) {
        return `The value of "${property}" must be a short CSS value without url() and var().`
      }
    }
  }
  return null
}

/** Colours, lengths, keywords and names of fonts, and the functions that compute them. */
function isPlainValue(value: unknown): boolean {
  if (typeof value !== 'string' || value.length > VALUE_CHARS_MAX) return false
  if (!/^[\w\s#%.,()'"+*/-]*$/.test(value)) return false
  const functions = value.match(/[\w-]+(?=\s*\()/g) ?? []
  return functions.every((it) => FUNCTIONS.has(it.toLowerCase()))
}

const FUNCTIONS = new Set([
  'calc',
  'clamp',
  'color-mix',
  'hsl',
  'hsla',
  'light-dark',
  'max',
  'min',
  'oklch',
  'rgb',
  'rgba',
])
