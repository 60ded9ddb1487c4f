/** Announces checkpoints outside the database, where a rollback of the database cannot take them along. Decision 0083. */
import type { AuditCheckpoint } from '../ports/audit-log.ts'
import type { World } from '../ports/world.ts'
import { isGenuine } from './chain-flaws.ts'
import { CHECKPOINT_EVENT, checkpointFields, type CheckpointFields } from './checkpoint-line.ts'

/** Called with each checkpoint that was committed. Never rejects. */
export type AnnounceCheckpoint = (tenantId: string, checkpoint: AuditCheckpoint) => Promise<void>

/** Appends whole lines to a file on another volume; resolves once they are on disk. */
export interface CheckpointFile {
  readonly path: string
  readonly append: (lines: string) => Promise<void>
}

type AnnouncerWorld = Pick<World, 'keyring' | 'log' | 'store'>

/**
 * Writes a line per checkpoint into the service log, and appends it to the file, if there is one.
 *
 * What cannot be appended waits: the newest checkpoint of each tenant, until the file can be written again. The failure is logged
 * once, and neither checkpoints nor requests wait for the file.
 */
export class CheckpointAnnouncer {
  readonly #world: AnnouncerWorld
  readonly #file: CheckpointFile | null
  /** By tenant. */
  readonly #waiting = new Map<string, CheckpointFields>()
  #writing: Promise<void> | null = null
  #failing = false

  constructor(world: AnnouncerWorld, file: CheckpointFile | null) {
    this.#world = world
    this.#file = file
  }

  readonly announce: AnnounceCheckpoint = async (tenantId, checkpoint) => {
    try {
      const keys = await this.#world.keyring.open(tenantId)
      this.#take(checkpointFields(keys, tenantId, checkpoint))
    } catch {
      // The tenant was deleted since, and its keys are gone. If they cannot be used, making checkpoints fails, and says so.
    }
  }

  /**
   * Announces the checkpoints that the tenants have now: those that were committed last before the process was killed, by a
   * command, or by a version that announced none. Stops early if `goOn` returns false.
   */
  async announceCurrent(
    tenantIds: readonly string[],
    goOn: () => boolean = () => true,
  ): Promise<void> {
    const { store } = this.#world
    for (const tenantId of tenantIds) {
      if (!goOn()) return
      const checkpoint = (await store.auditLog.state(tenantId))?.checkpoint ?? null
      if (checkpoint === null) continue
      if (await this.#isGenuine(tenantId, checkpoint)) await this.announce(tenantId, checkpoint)
    }
    await this.flush()
  }

  async #isGenuine(tenantId: string, checkpoint: AuditCheckpoint): Promise<boolean> {
    try {
      return isGenuine(await this.#world.keyring.open(tenantId), tenantId, checkpoint)
    } catch {
      // The tenant is deleted, or its keys are damaged.
      return false
    }
  }

  /** Appends what waits to the file, in one write. Resolves when that is done or has failed. */
  flush(): Promise<void> {
    this.#writing ??= this.#write().finally(() => {
      this.#writing = null
    })
    return this.#writing
  }

  #take(fields: CheckpointFields): void {
    this.#world.log.info(CHECKPOINT_EVENT, fields)
    if (this.#file === null) return
    const tenant = String(fields['tenant'])
    const waiting = this.#waiting.get(tenant)
    if (waiting !== undefined && Number(waiting['number']) > Number(fields['number'])) return
    this.#waiting.set(tenant, fields)
  }

  async #write(): Promise<void> {
    const file = this.#file
    if (file === null) return
    while (this.#waiting.size > 0) {
      const taken = [...this.#waiting]
      const lines = taken.map(([, it]) => JSON.stringify({ event: CHECKPOINT_EVENT, ...it }))
      try {
        await file.append(`${lines.join('\n')}\n`)
      } catch (error) {
        if (!this.#failing) {
          this.#world.log.error('audit_checkpoint_file_failed', error, { file: file.path })
        }
        this.#failing = true
        return
      }
      for (const [tenant, it] of taken) {
        if (this.#waiting.get(tenant) === it) this.#waiting.delete(tenant)
      }
      if (this.#failing) {
        this.#world.log.info('audit_checkpoint_file_works', { file: file.path })
      }
      this.#failing = false
    }
  }
}
