/**
 * The two halves of a key for encrypted files, in age's text form: `age1...` encrypts, and
 * `AGE-SECRET-KEY-1...` decrypts.
 *
 * Source: age-encryption.org/v1, the X25519 recipient type.
 */
import {
  Encrypter,
  generateX25519Identity,
  identityToRecipient,
  type Decrypter,
} from 'age-encryption'

/** The public half: a recipient of a file. */
export class AgeRecipient {
  readonly #text: string

  private constructor(text: string) {
    this.#text = text
  }

  /** Returns null if `text` is not a recipient. */
  static parse(text: string): AgeRecipient | null {
    try {
      if (!RECIPIENT.test(text)) return null
      new Encrypter().addRecipient(text)
      return new AgeRecipient(text)
    } catch {
      return null
    }
  }

  toString(): string {
    return this.#text
  }
}

/** The private half: decrypts the files of its recipient. */
export class AgeIdentity {
  readonly recipient: AgeRecipient
  readonly #secret: string

  private constructor(secret: string, recipient: AgeRecipient) {
    this.#secret = secret
    this.recipient = recipient
  }

  /** Returns a new identity and its text form, which is the secret itself. */
  static async make(): Promise<{ readonly identity: AgeIdentity; readonly secret: string }> {
    const secret = await generateX25519Identity()
    return { identity: (await AgeIdentity.parseFile(secret))!, secret }
  }

  /** Parses an identity file as age-keygen writes it; returns null unless it has exactly one identity. */
  static async parseFile(text: string): Promise<AgeIdentity | null> {
    const [secret, ...more] = text.split(/\r?\n/).filter((it) => it !== '' && !it.startsWith('#'))
    if (secret === undefined || more.length > 0 || !IDENTITY.test(secret)) return null
    const recipient = await identityToRecipient(secret).then(
      (it) => AgeRecipient.parse(it),
      () => null,
    )
    return recipient && new AgeIdentity(secret, recipient)
  }

  addTo(decrypter: Decrypter): void {
    decrypter.addIdentity(this.#secret)
  }
}

// Other kinds, such as the post-quantum age1pq1..., are longer, or have another 1.
const RECIPIENT = /^age1[02-9ac-hj-np-z]{58}$/
const IDENTITY = /^AGE-SECRET-KEY-1[02-9AC-HJ-NP-Z]{58}$/
