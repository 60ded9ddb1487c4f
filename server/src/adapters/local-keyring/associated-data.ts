import type { SealContext } from '../../ports/keyring.ts'
import { frame, NUMBER_BYTES } from './frame.ts'

/**
 * The associated data (AAD) of envelopes under one version of a tenant's data key: whose they are, where they
 * belong, and under which version they were made.
 *
 * Tokens of one kind differ in nothing but their id, and building the bytes anew for each would
 * cost as much as the encryption's set-up; so the bytes of recent kinds are kept, and an id as long as a
 * uuid is written over the one before.
 */
export class AssociatedData {
  readonly #tenantId: string
  readonly #version: number
  readonly #recent: Recent[] = []
  #next = 0
  /** Where an id begins: it comes after the label, the algorithm and the tenant. */
  readonly #idAt: number

  constructor(tenantId: string, version: number) {
    this.#tenantId = tenantId
    this.#version = version
    this.#idAt = frame([LABEL, ALGORITHM, tenantId]).length + NUMBER_BYTES
  }

  /** Returns bytes that are good until the next call. Throws for a text that has no UTF-8 form. */
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

/** Writes `text` and returns true, or returns false: it is not ASCII, and takes more than a byte a character. */
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
