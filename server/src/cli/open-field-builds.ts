import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { BUILD_FILES, type BuildFile, type FieldBuilds } from '../fields/field-builds.ts'
import type { Log } from '../ports/log.ts'

/** Beside the compiled code in a package: built when the package was. */
const PACKAGED = new URL('../field-builds/', import.meta.url)

/** The workspace in a checkout, which builds itself, and keeps the builds of earlier releases. */
const WORKSPACE = new URL('../../../fields/', import.meta.url)

/** What the workspace's `build.ts` exports, as far as it is used here. */
interface Builder {
  readonly currentBuild: () => Promise<{ readonly folder: string; readonly hash: string }>
}

/**
 * Opens the builds of card fields. In a checkout the current one is built now if it is missing or older than its sources; a
 * failure is logged, and the vault then serves no card fields.
 */
export function openFieldBuilds(
  log: Pick<Log, 'error'>,
  { packaged, workspace } = { packaged: PACKAGED, workspace: WORKSPACE },
): FieldBuilds {
  const folders = [
    new URL('v1/', packaged),
    new URL('dist/v1/', workspace),
    new URL('released/v1/', workspace),
  ]
  const current = findCurrent(packaged, workspace).catch((error: unknown) => {
    log.error('card_fields_not_built', error)
    return null
  })
  const files = new Map<string, BuildFile>()
  return { current: () => current, read }

  async function read(build: string, file: string): Promise<BuildFile | null> {
    if (!BUILD_NAME.test(build) || !Object.hasOwn(BUILD_FILES, file)) return null
    const name = `${build}/${file}`
    const known = files.get(name)
    if (known !== undefined) return known
    await current
    const folder = folders.find((it) => existsSync(new URL(name, it)))
    if (folder === undefined) return null
    const content = await readFile(new URL(name, folder))
    const loaded = { content, gzipped: await promisify(gzip)(content, { level: 9 }) }
    files.set(name, loaded)
    return loaded
  }
}

const BUILD_NAME = /^[0-9a-f]{16}$/

async function findCurrent(packaged: URL, workspace: URL): Promise<string> {
  if (existsSync(packaged)) {
    return (await readFile(new URL('v1/current', packaged), 'utf8')).trim()
  }
  const { currentBuild } = (await import(new URL('build.ts', workspace).href)) as Builder
  return (await currentBuild()).hash
}
