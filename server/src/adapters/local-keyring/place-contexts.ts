import type { Place } from '../../world/keyring.ts'
import { frame, NUMBER_BYTES } from './frame.ts'

/**
 * What is bound to the envelopes of one version of a tenant's data key: whose they are, where they
 * belong, and under which version they were made.
 *
 * Tokens of one kind differ in nothing but their id, and building the bytes anew for each would
 * cost as much as the encryption's set-up; so the bytes of recent kinds are kept, and an id as long as a
 * uuid is written over the one before.
 */
export class PlaceContexts {
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
  of(place: Place): Uint8Array {
    const { id } = place
    if (id.length !== UUID_CHARS || Buffer.byteLength(id) !== UUID_CHARS) return this.#build(place)
    const { bytes } = this.#find(place) ?? this.#remember(place)
    bytes.write(id, this.#idAt, 'latin1')
    return bytes
  }

  #find(place: Place): Recent | undefined {
    for (const it of this.#recent) if (isSameKind(it.place, place)) return it
    return undefined
  }

  #build({ id, part, type, containers }: Place): Buffer {
    const version = String(this.#version)
    return frame([LABEL, ALGORITHM, this.#tenantId, id, part, type, version, ...containers])
  }

  #remember(place: Place): Recent {
    const { id, part, type, containers } = place
    const recent = {
      place: { id, part, type, containers: [...containers] },
      bytes: this.#build(place),
    }
    this.#recent[this.#next] = recent
    this.#next = (this.#next + 1) % KINDS_MAX
    return recent
  }
}

interface Recent {
  readonly place: Place
  readonly bytes: Buffer
}

function isSameKind(a: Place, b: Place): boolean {
  if (a.type !== b.type || a.part !== b.part) return false
  if (a.containers.length !== b.containers.length) return false
  for (const [index, it] of a.containers.entries()) if (it !== b.containers[index]) return false
  return true
}

const LABEL = 'symbolon envelope'
const ALGORITHM = '1'
const KINDS_MAX = 16
const UUID_CHARS = 36
