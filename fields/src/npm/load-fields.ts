/** What shops import from the package `@symbolon/fields`: a loader for the vault's script, and the types of its elements. */
export type * from '../page/fields.ts'
export type { FieldsEvents } from '../page/frame-element.ts'
export type { FieldsState, FieldsToken, TokenOptions } from '../protocol/messages.ts'
export type { StyleRules } from '../protocol/style-rules.ts'

export interface FieldsLoadOptions {
  /** As `symbolon fields` prints it, for Subresource Integrity; only with a `src` that has a hash in it. */
  readonly integrity?: string
  /** Of the page's Content-Security-Policy. */
  readonly nonce?: string
}

/**
 * Loads the card fields from a vault, and resolves once their elements are defined. Rejects if the script cannot be loaded.
 *
 * Where the page requires Trusted Types, its policy has to allow `symbolon-fields`: the only policy here, which lets through
 * scripts of card fields alone.
 *
 * Example: `await loadFields('https://vault.example/fields/v1/fields.js')`.
 */
export async function loadFields(
  src: string,
  { integrity, nonce }: FieldsLoadOptions = {},
): Promise<void> {
  const known = loading.get(src)
  if (known !== undefined) return known
  const script = document.createElement('script')
  script.type = 'module'
  script.crossOrigin = 'anonymous'
  if (integrity !== undefined) script.integrity = integrity
  if (nonce !== undefined) script.nonce = nonce
  const loaded = new Promise<void>((resolve, reject) => {
    script.addEventListener('load', () => resolve())
    script.addEventListener('error', () => {
      loading.delete(src)
      script.remove()
      reject(new Error(`Cannot load the card fields from ${src}`))
    })
  })
  script.src = trustedUrl(checkedUrl(src))
  document.head.append(script)
  loading.set(src, loaded)
  return loaded
}

const loading = new Map<string, Promise<void>>()

/** In browsers with Trusted Types, the URL of a script has to come from a policy. */
function trustedUrl(src: string): string {
  const { trustedTypes } = globalThis as { trustedTypes?: PolicyFactory }
  if (trustedTypes === undefined) return src
  policy ??= trustedTypes.createPolicy('symbolon-fields', { createScriptURL: checkedUrl })
  return policy.createScriptURL(src)
}

function checkedUrl(src: string): string {
  if (/^https?:\/\/[^/?#]+\/fields\/v1\/(?:[0-9a-f]{16}\/)?fields\.js$/.test(src)) return src
  throw new TypeError(`${src} is not the URL of card fields: https://VAULT/fields/v1/fields.js`)
}

let policy: Policy | undefined

/** What is used of the Trusted Types of the browser, which TypeScript does not know yet. */
interface PolicyFactory {
  readonly createPolicy: (name: string, rules: Policy) => Policy
}

interface Policy {
  readonly createScriptURL: (url: string) => string
}
