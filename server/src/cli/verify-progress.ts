import { z } from 'zod'
import type { ValueKind } from '../ports/unreadable-value.ts'
import type { VerifyPoint } from '../integrity/verify-values.ts'
import { ENVELOPE_TABLES } from '../ports/store/entities.ts'
import { ResumeFile, type VerifyScope } from './resume-file.ts'

/** The name of a damaged value in reports; `tenant` is null for the root key check. */
export interface DamageName {
  readonly tenant: string | null
  readonly kind: ValueKind
  readonly id: string
}

interface VerifiedPart {
  readonly values: number
  readonly damaged: readonly DamageName[]
  readonly next?: VerifyPoint | undefined
}

const saved = z.object({
  values: z.number(),
  damaged: z.array(
    z.object({ tenant: z.string().nullable(), kind: z.custom<ValueKind>(isText), id: z.string() }),
  ),
  next: z
    .object({
      tenantId: z.string(),
      after: z.object({ table: z.enum(ENVELOPE_TABLES), row: z.string() }).nullable(),
    })
    .optional(),
})

/** The progress of a run of `symbolon verify`; saved to a file, if one is given, so that another run can continue. */
export class VerifyProgress {
  readonly #file: ResumeFile
  #values: number
  readonly #damaged: DamageName[]
  #next: VerifyPoint | undefined

  /** Reads the file, if it exists. Rejects with ConfigError if it belongs to another vault or tenant. */
  static async open(path: string | undefined, scope: VerifyScope): Promise<VerifyProgress> {
    const file = new ResumeFile(path, scope)
    return new VerifyProgress(
      file,
      (await file.read('verify', saved)) ?? { values: 0, damaged: [] },
    )
  }

  private constructor(file: ResumeFile, { values, damaged, next }: VerifiedPart) {
    this.#file = file
    this.#values = values
    this.#damaged = [...damaged]
    this.#next = next
  }

  get values(): number {
    return this.#values
  }

  get damaged(): readonly DamageName[] {
    return this.#damaged
  }

  /** Where to continue; undefined at the beginning. */
  get next(): VerifyPoint | undefined {
    return this.#next
  }

  async add({ values, damaged, next }: VerifiedPart): Promise<void> {
    this.#values += values
    this.#damaged.push(...damaged)
    this.#next = next
    if (next === undefined) return
    await this.#file.write({ values: this.#values, damaged: this.#damaged, next })
  }

  /** Removes the file, so that the next run starts from the beginning. */
  async finish(): Promise<void> {
    await this.#file.remove()
  }
}

function isText(value: unknown): boolean {
  return typeof value === 'string'
}
