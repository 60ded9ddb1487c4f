import type { FindKeys } from '../../src/adapters/local-keyring/local-keyring.ts'
import { createHash } from 'node:crypto'
import { base58Of } from '../../src/adapters/local-keyring/base58.ts'
import { Sensitive } from '../../src/base/sensitive.ts'
import {
  TENANT_KEY_PURPOSES,
  UnreadableEnvelope,
  type Keyring,
  type SealContext,
  type NewTenantKeys,
  type TenantKeys,
} from '../../src/ports/keyring.ts'

/**
 * A keyring that hides nothing and checks as strictly as a real one.
 *
 * An envelope is readable JSON of the seal context and the plaintext, so that tests see in the store what was sealed, and for
 * which context; a plain hash after it detects changes. Keys are tenant names.
 */
export class TransparentKeyring implements Keyring {
  readonly #findKeys: FindKeys
  readonly #opened = new Map<string, TenantKeys>()
  readonly #opening = new Map<string, Promise<TenantKeys>>()
  #made = 0

  constructor(findKeys: FindKeys) {
    this.#findKeys = findKeys
  }

  async create(tenantId: string, now: number): Promise<NewTenantKeys> {
    const keys = TENANT_KEY_PURPOSES.map((purpose) => {
      this.#made += 1
      const wrapped = Buffer.from(JSON.stringify({ tenantId, purpose, number: this.#made }))
      return { purpose, version: 1, wrapped, createdAt: now }
    })
    return { wrapped: keys, keys: await new TransparentKeyring(async () => keys).open(tenantId) }
  }

  open(tenantId: string): TenantKeys | Promise<TenantKeys> {
    return this.#opened.get(tenantId) ?? this.#opening.get(tenantId) ?? this.#startOpening(tenantId)
  }

  forget(tenantId: string): void {
    this.#opened.delete(tenantId)
    this.#opening.delete(tenantId)
  }

  #startOpening(tenantId: string): Promise<TenantKeys> {
    const opening = this.#load(tenantId).then(
      (keys) => {
        if (this.#opening.get(tenantId) === opening) this.#opened.set(tenantId, keys)
        this.#end(tenantId, opening)
        return keys
      },
      (error: unknown) => {
        this.#end(tenantId, opening)
        throw error
      },
    )
    this.#opening.set(tenantId, opening)
    return opening
  }

  #end(tenantId: string, opening: Promise<TenantKeys>): void {
    if (this.#opening.get(tenantId) === opening) this.#opening.delete(tenantId)
  }

  async #load(tenantId: string): Promise<TenantKeys> {
    const found = await this.#findKeys(tenantId)
    if (found.length === 0) throw new Error('Cannot open the keys: the tenant has none')
    for (const { purpose, wrapped } of found) {
      const key = JSON.parse(Buffer.from(wrapped).toString()) as Record<string, unknown>
      if (key.tenantId !== tenantId || key.purpose !== purpose) {
        throw new Error('Cannot open the keys: one belongs elsewhere')
      }
    }
    return new TransparentTenantKeys(tenantId)
  }
}

class TransparentTenantKeys implements TenantKeys {
  readonly #tenantId: string
  #sealed = 0

  constructor(tenantId: string) {
    this.#tenantId = tenantId
  }

  seal(context: SealContext, plaintext: Sensitive<string>): Uint8Array {
    this.#sealed += 1
    const content = {
      context: this.#written(context),
      number: this.#sealed,
      plaintext: revealed(plaintext),
    }
    const body = Buffer.from(JSON.stringify(content))
    return Buffer.concat([body, sha256(body)])
  }

  open(context: SealContext, envelope: Uint8Array): Sensitive<string> {
    const end = Math.max(envelope.length - HASH_BYTES, 0)
    const body = Buffer.from(envelope.subarray(0, end))
    if (!sha256(body).equals(envelope.subarray(end))) {
      throw new UnreadableEnvelope('Cannot open an envelope: it was altered')
    }
    const content = JSON.parse(body.toString()) as { context: unknown; plaintext: string }
    if (JSON.stringify(content.context) !== JSON.stringify(this.#written(context))) {
      throw new UnreadableEnvelope('Cannot open an envelope: it belongs elsewhere')
    }
    return new Sensitive(content.plaintext)
  }

  fingerprint(scope: string, value: Sensitive<string>): string {
    if (!scope.isWellFormed()) throw new Error('Cannot make a fingerprint: the scope is ill-formed')
    return base58Of(sha256(JSON.stringify(['fp', this.#tenantId, scope, revealed(value)])))
  }

  index(value: Sensitive<string>): Uint8Array {
    return sha256(JSON.stringify(['idx', this.#tenantId, revealed(value)]))
  }

  attest(statement: readonly string[]): Uint8Array {
    if (!statement.every((it) => it.isWellFormed())) {
      throw new Error('Cannot attest: a text of the statement is ill-formed')
    }
    return sha256(JSON.stringify(['attest', this.#tenantId, ...statement]))
  }

  attests(statement: readonly string[], proof: Uint8Array): boolean {
    return sha256(JSON.stringify(['attest', this.#tenantId, ...statement])).equals(proof)
  }

  #written({ id, part, type, containers }: SealContext): readonly unknown[] {
    if (!id.isWellFormed()) throw new Error('Cannot write a context: its id is ill-formed')
    return [this.#tenantId, id, part, type, containers]
  }
}

function revealed(value: Sensitive<string>): string {
  const text = value.reveal()
  if (!text.isWellFormed()) throw new Error('Cannot encode a text: it holds a lone surrogate')
  return text
}

function sha256(data: string | Uint8Array): Buffer {
  return createHash('sha256').update(data).digest()
}

const HASH_BYTES = 32
