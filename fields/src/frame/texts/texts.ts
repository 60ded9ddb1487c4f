/** What buyers read, by language. English is the default; a test checks that each other has all that English has. */
import type { FieldErrorCode, FieldName } from '../../protocol/messages.ts'
import { arabic } from './arabic.ts'
import { dutch } from './dutch.ts'
import { english } from './english.ts'
import { french } from './french.ts'
import { german } from './german.ts'
import { italian } from './italian.ts'
import { japanese } from './japanese.ts'
import { polish } from './polish.ts'
import { portuguese } from './portuguese.ts'
import { spanish } from './spanish.ts'

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
  /** Above the brands of a co-branded card, of which the buyer may choose one. */
  readonly brandChoice: string
  /** By code, or by field and code where a field needs a sentence of its own. */
  readonly errors: Readonly<
    Partial<Record<FieldErrorCode | `${FieldName}.${FieldErrorCode}`, string>>
  >
}

export const LANGUAGES: readonly Texts[] = [
  english,
  arabic,
  dutch,
  french,
  german,
  italian,
  japanese,
  polish,
  portuguese,
  spanish,
]

/** Returns the texts of the language nearest to `locale`: `de-AT` finds `de`. */
export function textsFor(locale: string): Texts {
  const [language] = locale.toLowerCase().split(/[-_]/)
  return LANGUAGES.find((it) => it.language === language) ?? english
}

/** Returns what to say of a field with this flaw. */
export function messageOf({ errors }: Texts, field: FieldName, code: FieldErrorCode): string {
  return errors[`${field}.${code}`] ?? errors[code] ?? code
}
