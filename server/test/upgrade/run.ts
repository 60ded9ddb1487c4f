/** Opens a vault that an earlier version made, and holds what it answers against what that version answers. */
import assert from 'node:assert/strict'
import { cpSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { query } from '../kit/postgres/query.ts'
import { runProgram } from '../kit/running-vault.ts'
import { serveHere, type MigratedService } from '../migrate/service.ts'

export interface UpgradeRun {
  /** The checkout of the earlier version. */
  readonly before: string
  readonly folder: string
  /** The address of a PostgreSQL server; null for SQLite. */
  readonly url: string | null
  readonly tokens: number
}

export interface UpgradeTally {
  /** Requests that both versions answered alike. */
  readonly answers: number
  /** The last line of each command. */
  readonly verify: string
  readonly rotate: string
}

/** The parts of the earlier version that make a vault and query it, in the form in which this version has them. */
type Earlier = Pick<typeof import('../migrate/service.ts'), 'serveHere'> &
  Pick<typeof import('../migrate/furnish.ts'), 'furnish'> &
  Pick<typeof import('../migrate/behaviour.ts'), 'behaviour'>

export async function upgradeFrom(run: UpgradeRun): Promise<UpgradeTally> {
  const earlier = await loadEarlier(run.before)
  const own = await newLocation(run, 'own')
  const made = await serving(earlier.serveHere, own, (it) => earlier.furnish(it, run.tokens))
  const copy = await newLocation(run, 'copy', own)

  const expected = await serving(earlier.serveHere, copy, (it) => earlier.behaviour(it.url, made))
  const verified = await succeed(own, ['verify'])
  const answers = await serving(serveHere, own, (it) => earlier.behaviour(it.url, made))
  for (const [n, it] of expected.entries()) assert.deepEqual(answers[n], it)
  assert.equal(answers.length, expected.length)

  const rotated = await succeed(own, ['keys', 'rotate'])
  await succeed(own, ['audit', 'verify'])
  await succeed(own, ['verify'])
  await succeed(own, ['doctor'])
  return { answers: answers.length, verify: lastLine(verified), rotate: lastLine(rotated) }
}

async function loadEarlier(checkout: string): Promise<Earlier> {
  const parts = ['service', 'furnish', 'behaviour'].map(
    async (it) =>
      (await import(
        pathToFileURL(path.join(checkout, 'server/test/migrate', `${it}.ts`)).href
      )) as object,
  )
  return Object.assign({}, ...(await Promise.all(parts))) as Earlier
}

/** A data folder, and the database if it is not in it. */
interface VaultLocation {
  readonly folder: string
  readonly database?: string
}

/** Returns a new location: empty, or a copy of one that is not in use. */
async function newLocation(
  run: UpgradeRun,
  name: string,
  original?: VaultLocation,
): Promise<VaultLocation> {
  const folder = path.join(run.folder, name)
  if (original !== undefined) cpSync(original.folder, folder, { recursive: true })
  if (run.url === null) return { folder }
  const template = original === undefined ? '' : 'TEMPLATE upgrade_own'
  await query(run.url, `CREATE DATABASE upgrade_${name} ${template} STRATEGY = FILE_COPY`)
  const database = new URL(run.url)
  database.pathname = `/upgrade_${name}`
  return { folder, database: database.href }
}

async function serving<Result>(
  serve: (folder: string, database?: string) => Promise<MigratedService>,
  { folder, database }: VaultLocation,
  work: (service: MigratedService) => Promise<Result>,
): Promise<Result> {
  const service = await serve(folder, database)
  try {
    return await work(service)
  } finally {
    await service.close()
  }
}

/** Runs a command of this version to its end, and returns what it printed. */
async function succeed({ folder, database }: VaultLocation, args: string[]): Promise<string> {
  const { status, out, err } = await runProgram(args, {
    SYMBOLON_DATA_DIR: folder,
    ...(database !== undefined && { SYMBOLON_DATABASE_URL: database }),
  })
  assert.equal(status, 0, `${args.join(' ')}: ${out}${err}`)
  return out
}

function lastLine(text: string): string {
  return text.trimEnd().split('\n').at(-1)!
}
