/** What buyers read, by language. English is the default and the only complete one by type; each other is checked by a test. */
import type { FieldErrorCode, FieldName } from '../../protocol/messages.ts'
import { english } from './english.ts'

export interface Texts {
  /** BCP 47. */
  readonly language: string
  readonly direction: 'ltr' | 'rtl'
  /** Of the document, for screen readers. */
  readonly title: string
  readonly labels: Readonly<Record<FieldName, string>>
  /** Of the button that copies a revealed value, and what it says once it is done, or cannot be done. */
  readonly copy: string
  readonly copied: string
  readonly notCopied: string
  readonly placeholders: Readonly<Partial<Record<FieldName, string>>>
  /** By code, or by field and code where a field needs a sentence of its own. */
  readonly errors: Readonly<
    Partial<Record<FieldErrorCode | `${FieldName}.${FieldErrorCode}`, string>>
  >
}

const LANGUAGES: readonly Texts[] = [english]

/** Returns the texts of the language nearest to `locale`: `de-AT` finds `de`. */
export function textsFor(locale: string): Texts {
  const [language] = locale.toLowerCase().split(/[-_]/)
  return LANGUAGES.find((it) => it.language === language) ?? english
}
