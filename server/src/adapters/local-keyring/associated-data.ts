import type { SealContext } from '../../ports/keyring.ts'
import { frame, NUMBER_BYTES } from './frame.ts'

/**
 * The associated data (AAD) of envelopes under one version of a tenant's data key: the tenant, the
 * seal context and the key version.
 *
 * Tokens of one kind differ only in their id, and building the bytes for each would cost as much as
 * setting up the encryption. So the bytes of recent kinds are cached, and an id as long as a uuid
 * overwrites the previous one.
 */
export class AssociatedData {
  readonly #tenantId: string
  readonly #version: number
  readonly #recent: Recent[] = []
  #next = 0
  /** Offset of the id, which follows the label, the algorithm and the tenant. */
  readonly #idAt: number

  constructor(tenantId: string, version: number) {
    this.#tenantId = tenantId
    this.#version = version
    this.#idAt = frame([LABEL, ALGORITHM, tenantId]).length + NUMBER_BYTES
  }

  /** Returns bytes that stay valid until the next call. Throws for a text that has no UTF-8 form. */
  of(context: SealContext): Uint8Array {
    if (context.id.length !== UUID_CHARS) return this.#build(context)
    const { bytes } = this.#find(context) ?? this.#remember(context)
    return writeAscii(context.id, bytes, this.#idAt) ? bytes : this.#build(context)
  }

  #find(context: SealContext): Recent | undefined {
    for (const it of this.#recent) if (isSameKind(it.context, context)) return it
    return undefined
  }

  #build({ id, part, type, containers }: SealContext): Buffer {
    const version = String(this.#version)
    return frame([LABEL, ALGORITHM, this.#tenantId, id, part, type, version, ...containers])
  }

  #remember(context: SealContext): Recent {
    const { id, part, type, containers } = context
    const recent = {
      context: { id, part, type, containers: [...containers] },
      bytes: this.#build({ ...context, id: ANY_ID }),
    }
    this.#recent[this.#next] = recent
    this.#next = (this.#next + 1) % KINDS_MAX
    return recent
  }
}

interface Recent {
  readonly context: SealContext
  readonly bytes: Buffer
}

function isSameKind(a: SealContext, b: SealContext): boolean {
  if (a.type !== b.type || a.part !== b.part) return false
  if (a.containers.length !== b.containers.length) return false
  for (let at = 0; at < a.containers.length; at++) {
    if (a.containers[at] !== b.containers[at]) return false
  }
  return true
}

/**
 * Writes `text` and returns true; returns false if it is not ASCII and so takes more than a byte
 * per character.
 */
function writeAscii(text: string, target: Uint8Array, at: number): boolean {
  for (let n = 0; n < text.length; n++) {
    const code = text.charCodeAt(n)
    if (code > ASCII_MAX) return false
    target[at + n] = code
  }
  return true
}

const LABEL = 'symbolon envelope'
const ALGORITHM = '1'
const KINDS_MAX = 16
const UUID_CHARS = 36
const ANY_ID = '?'.repeat(UUID_CHARS)
const ASCII_MAX = 0x7f
