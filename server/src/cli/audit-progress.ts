import { z } from 'zod'
import type { AuditPoint, AuditVerdict } from '../audit/verification.ts'
import { ResumeFile, type VerifyScope } from './resume-file.ts'

const count = z.number().int().nonnegative()

const checked = {
  tenantId: z.string(),
  first: count,
  events: count,
  from: z.number().nullable(),
  to: z.number().nullable(),
}

const saved = z.object({
  verdicts: z.array(
    z.object({
      ...checked,
      last: count,
      hash: z.string(),
      sealed: count,
      sealedAt: z.number().nullable(),
      flaw: z.object({ number: z.number().int(), what: z.string() }).nullable(),
      uncovered: z.array(
        z.object({
          first: count,
          last: count,
          why: z.enum(['removed', 'after the checkpoint', 'after the flaw']),
        }),
      ),
    }),
  ),
  at: z
    .object({
      ...checked,
      position: z.object({
        number: count,
        listed: count,
        hash: z.hex().transform((text) => Uint8Array.from(Buffer.from(text, 'hex'))),
      }),
    })
    .nullable(),
})

/** The progress of a run of `symbolon audit verify`; saved to a file, if one is given, so that another run can continue. */
export class AuditProgress {
  readonly #file: ResumeFile
  readonly #verdicts: AuditVerdict[]
  #at: AuditPoint | null

  /** Reads the file, if it exists. Rejects with ConfigError if it belongs to another vault or tenant. */
  static async open(path: string | undefined, scope: VerifyScope): Promise<AuditProgress> {
    const file = new ResumeFile(path, scope)
    const { verdicts, at } = (await file.read('audit verify', saved)) ?? { verdicts: [], at: null }
    return new AuditProgress(file, verdicts, at)
  }

  private constructor(file: ResumeFile, verdicts: readonly AuditVerdict[], at: AuditPoint | null) {
    this.#file = file
    this.#verdicts = [...verdicts]
    this.#at = at
  }

  /** Where to continue within an audit log. */
  get at(): AuditPoint | null {
    return this.#at
  }

  /** The verdict on a tenant whose audit log was verified to its end. */
  verdictOf(tenantId: string): AuditVerdict | null {
    return this.#verdicts.find((it) => it.tenantId === tenantId) ?? null
  }

  async reach(point: AuditPoint): Promise<void> {
    this.#at = point
    await this.#save()
  }

  async end(verdict: AuditVerdict): Promise<void> {
    this.#at = null
    this.#verdicts.push(verdict)
    await this.#save()
  }

  /** Removes the file, so that the next run starts from the beginning. */
  async finish(): Promise<void> {
    await this.#file.remove()
  }

  async #save(): Promise<void> {
    const at = this.#at
    const hash = at === null ? '' : Buffer.from(at.position.hash).toString('hex')
    await this.#file.write({
      verdicts: this.#verdicts,
      at: at === null ? null : { ...at, position: { ...at.position, hash } },
    })
  }
}
