/**
 * The service for clients with their own HTTP stack: the program as an operator runs it, on the store the run uses; one
 * server, or two on one database, called in turn, if the run uses two.
 */
import assert from 'node:assert/strict'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { roundRobin } from './round-robin.ts'
import { startVault, type RunningVault } from './running-vault.ts'
import { serversAsked } from './servers.ts'
import { testDatabase } from './test-store.ts'

export interface RunningService {
  /** Without a trailing slash. */
  readonly url: string
  readonly managementKey: string
  /** Throws if a server does not exit cleanly. */
  readonly stop: () => Promise<void>
}

/** Starts it empty; every server gets `variables`. */
export async function startService(
  variables: Readonly<Record<string, string>> = {},
): Promise<RunningService> {
  const folder = mkdtempSync(join(tmpdir(), 'symbolon-service-'))
  const database = await testDatabase()
  const servers: RunningVault[] = []
  for (let n = 0; n < serversAsked(); n++) servers.push(await start(n))
  const front = await roundRobin(servers.map((it) => it.url))
  return {
    url: front.url,
    managementKey: /^\s+api_key\s+(\S+)$/m.exec(servers[0]!.greeting)![1]!,
    stop: async () => {
      await front.close()
      const ends = await Promise.all(servers.map((it) => it.stop()))
      rmSync(folder, { recursive: true })
      for (const { status, err } of ends) assert.equal(status, 0, err)
    },
  }

  /** The first server creates the root key and the tenant; the others get a copy of the key, as documented for operators. */
  async function start(n: number): Promise<RunningVault> {
    const own = join(folder, String(n))
    mkdirSync(own)
    if (n > 0) copyFileSync(join(folder, '0', 'root.key'), join(own, 'root.key'))
    const where = database === null ? {} : { SYMBOLON_DATABASE_URL: database }
    return await startVault(own, { SYMBOLON_REACTOR_LEVEL: 'jail', ...where, ...variables })
  }
}
