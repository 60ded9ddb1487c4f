/**
 * Messages between a page and its iframe, once they are connected: structured clones over one MessagePort.
 *
 * Nothing here can carry the value of a field. A page's scripts may read and forge every message: the iframe checks what it gets.
 */
import type { BrandName } from '../card/brands.ts'
import type { NumberError } from '../card/card-number.ts'
import type { ExpiryError } from '../card/expiry-date.ts'
import type { CodeError } from '../card/security-code.ts'
import type { StyleRules } from './style-rules.ts'

export const FIELD_NAMES = ['number', 'expiry', 'cvc', 'name', 'postal-code'] as const
export type CardFieldName = (typeof FIELD_NAMES)[number]
/** `text` is the field for any other secret. */
export type FieldName = CardFieldName | 'text'

export type FieldErrorCode = NumberError | ExpiryError | CodeError | 'too-long'

export interface FieldError {
  readonly code: FieldErrorCode
  /** In the language of the fields, as the buyer reads it. */
  readonly message: string
}

export interface FieldState {
  readonly empty: boolean
  /** Whether it can be sent as it is. */
  readonly complete: boolean
  /** Set when a field is left with a flaw, and cleared by the next keystroke. */
  readonly error: FieldError | null
}

export interface FieldsState {
  readonly fields: Readonly<Partial<Record<FieldName, FieldState>>>
  /** Whether every field is empty. */
  readonly empty: boolean
  /** Whether every field is complete. */
  readonly complete: boolean
  /** None while the first digits leave it open; two for co-branded cards. */
  readonly brands: readonly BrandName[]
  /** The brand that a buyer chose of a co-branded card, or the only one; null while it is open. */
  readonly brand: BrandName | null
  /** The last four digits of a complete number that is not being typed, otherwise null. */
  readonly lastFour: string | null
  /** The first six or eight digits of such a number, otherwise null. */
  readonly bin: string | null
}

/** Members of a token that the page may set. Strings are kept as they are: expressions of the vault are refused. */
export interface TokenOptions {
  /** The brand that a buyer chose of a co-branded card is added as `brand`, unless the page sets that. */
  readonly metadata?: Readonly<Record<string, string>>
  readonly containers?: readonly string[]
  /** Any JSON; an expression in it may show at most the first six or the last four digits. */
  readonly mask?: unknown
  /** ISO 8601. */
  readonly expires_at?: string
  readonly deduplicate_token?: boolean
}

export const COLOR_SCHEMES = ['light', 'dark', 'light dark'] as const
export type ColorScheme = (typeof COLOR_SCHEMES)[number]

/** Sent to an iframe once, when it is connected. */
export type Configuration = CommonConfiguration & RoleConfiguration

export interface CommonConfiguration {
  readonly publicKey: string
  /** BCP 47, such as `de` or `pt-BR`. */
  readonly locale: string
  /** Of the place where the fields stand, so that they are as light or dark as the page. */
  readonly colorScheme: ColorScheme
  readonly styles: StyleRules
}

export type RoleConfiguration =
  /** Fields of a card; with a group, a part of them that its coordinator reads. `brands` are those accepted, null for all. */
  | {
      readonly role: 'card'
      readonly fields: readonly CardFieldName[]
      readonly brands: readonly BrandName[] | null
      readonly group: string | null
    }
  /** Hidden: reads the fields of a group, which are in iframes of their own, and submits them together. */
  | { readonly role: 'coordinator'; readonly group: string }
  /** A field for any other secret. */
  | { readonly role: 'text'; readonly label: string; readonly tokenType: string }
  /** Shows a stored card to its owner. */
  | { readonly role: 'reveal' }

export type PageMessage =
  | { readonly type: 'configure'; readonly configuration: Configuration }
  | { readonly type: 'style'; readonly styles: StyleRules }
  | { readonly type: 'focus'; readonly field: FieldName | null }
  | { readonly type: 'clear' }
  | PageCall

/** Answered with a result or a failure of the same number. */
export type PageCall = { readonly call: number } & CallContent

export type CallContent =
  | { readonly type: 'tokenize'; readonly options: TokenOptions }
  /** Change a token, for which the session must have been authorized. */
  | { readonly type: 'update'; readonly tokenId: string; readonly options: TokenOptions }
  /** To a coordinator: join the fields of the group, each of which is ready. Its result is null. */
  | { readonly type: 'join'; readonly fields: readonly CardFieldName[] }
  /** Open a session. Its result is the nonce, with which the page's backend authorizes it for one token. */
  | { readonly type: 'open-session' }
  /** Show the token that the session is authorized for. Its result is null. */
  | { readonly type: 'reveal'; readonly tokenId: string }

export type FrameMessage =
  /** `title` is what the iframe is called in the language of the fields. */
  | { readonly type: 'ready'; readonly title: string }
  | { readonly type: 'change'; readonly state: FieldsState }
  | { readonly type: 'focus' | 'blur' | 'autofill'; readonly field: FieldName }
  /** Enter was pressed in a field. */
  | { readonly type: 'submit' }
  /** The revealed card was copied to the clipboard. */
  | { readonly type: 'copy' }
  /** Of the content, in CSS pixels. */
  | { readonly type: 'resize'; readonly height: number }
  | { readonly type: 'result'; readonly call: number; readonly result: CallResult }
  | { readonly type: 'failure'; readonly call: number; readonly problem: FieldsProblem }
  /** Styles were refused; the others stay. */
  | { readonly type: 'style-refused'; readonly problem: FieldsProblem }
  /** The configuration was refused; the iframe does nothing any more. */
  | { readonly type: 'refused'; readonly problem: FieldsProblem }

/** A token, a session's nonce, or nothing. */
export type CallResult = FieldsToken | string | null

/** A token without its data: what of it the page may know. */
export interface FieldsToken {
  readonly id: string
  readonly type: string
  readonly containers?: readonly string[]
  readonly metadata?: Readonly<Record<string, string>>
  readonly expires_at?: string | null
  readonly created_at?: string
}

/** An error in the service's format. A status of 0 means that there is no answer of the service. */
export interface FieldsProblem {
  readonly title: string
  readonly status: number
  readonly detail: string
  /** A code of the service, or one of ours: see docs/browser.md. */
  readonly code?: string
  readonly errors?: Readonly<Record<string, readonly string[]>>
  /** Seconds after which to try again, of a 429 or 503. */
  readonly retryAfter?: number
}
