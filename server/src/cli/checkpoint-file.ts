import { realpath } from 'node:fs/promises'
import path from 'node:path'
import { AppendFile, UnusableFile } from '../adapters/system/append-file.ts'
import type { CheckpointFile } from '../audit/checkpoint-announcer.ts'
import { SettingError, type Config } from '../config.ts'

/**
 * Refuses a file of SYMBOLON_AUDIT_CHECKPOINT_FILE that cannot be used, with SettingError. Creates it if it is missing, unless the
 * settings forbid to create anything before a vault was found. Call before the store is opened.
 */
export async function checkCheckpointFile(config: Config): Promise<void> {
  await openIn(config, { create: !config.noCreate })
}

/** Opens the file, and creates it if it is missing; null if none is set. Rejects with SettingError if it cannot be used. */
export async function openCheckpointFile(config: Config): Promise<CheckpointFile | null> {
  return await openIn(config, { create: true })
}

async function openIn(
  config: Config,
  options: { readonly create: boolean },
): Promise<CheckpointFile | null> {
  if (config.auditCheckpointFile === null) return null
  const flaw = await flawOfCheckpointFile(config, config.auditCheckpointFile, options)
  if (flaw === null) return new AppendFile(config.auditCheckpointFile)
  throw new SettingError(
    'SYMBOLON_AUDIT_CHECKPOINT_FILE',
    `is '${config.auditCheckpointFile}', which ${flaw}.`,
  )
}

/** Returns why the file cannot be used, to follow "which"; null if it can. Without `create`, a missing one can. */
export async function flawOfCheckpointFile(
  { dataDir }: Pick<Config, 'dataDir'>,
  file: string,
  { create }: { readonly create: boolean },
): Promise<string | null> {
  const [inside, folder] = [await realPathOf(file), await realPathOf(dataDir)]
  if (inside.startsWith(folder === path.sep ? folder : `${folder}${path.sep}`)) {
    return 'is in the data folder: anyone who puts the folder back to an earlier state would put the file back with it'
  }
  try {
    await new AppendFile(file).check({ create })
    return null
  } catch (error) {
    if (error instanceof UnusableFile) return error.message
    throw error
  }
}

/** Follows symbolic links as far as the path exists. */
async function realPathOf(name: string): Promise<string> {
  const whole = path.resolve(name)
  try {
    return await realpath(whole)
  } catch {
    const folder = path.dirname(whole)
    return folder === whole ? whole : path.join(await realPathOf(folder), path.basename(whole))
  }
}
