/**
 * Vaults behind a real socket on localhost, for clients that bring their own HTTP.
 */
import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { stillVault } from '../kit/still-vault.ts'

export interface ListeningVault {
  /** Without a slash at the end. */
  readonly baseUrl: string
  readonly managementKey: string
  readonly close: () => Promise<void>
}

/** The app over memory stores, in this process. */
export async function listenInMemory(): Promise<ListeningVault> {
  const vault = await stillVault()
  await vault.app.listen({ host: 'localhost', port: 0 })
  const { port } = vault.app.server.address() as AddressInfo
  return {
    baseUrl: `http://localhost:${port}`,
    managementKey: vault.managementKey,
    close: vault.close,
  }
}

/** `symbolon serve` as an operator starts it first: an empty folder, a process of its own. */
export async function startServe(): Promise<ListeningVault> {
  const folder = mkdtempSync(path.join(tmpdir(), 'symbolon-client-'))
  const main = path.join(import.meta.dirname, '../../src/main.ts')
  const args = [main, 'serve', '--port', '0', '--data-dir', folder, '--log-level', 'silent']
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const { apiKey, baseUrl } = await greetingOf(child)
  return {
    baseUrl,
    managementKey: apiKey,
    close: async () => {
      child.kill('SIGTERM')
      if (child.exitCode === null) await once(child, 'exit')
      rmSync(folder, { recursive: true })
    },
  }
}

async function greetingOf(
  child: ChildProcessByStdio<null, Readable, null>,
): Promise<{ apiKey: string; baseUrl: string }> {
  let apiKey: string | undefined
  for await (const line of createInterface(child.stdout)) {
    apiKey ??= /api_key\s+(\S+)/.exec(line)?.[1]
    const baseUrl = /is ready at (\S+)/.exec(line)?.[1]
    if (baseUrl !== undefined && apiKey !== undefined) return { apiKey, baseUrl }
  }
  throw new Error(`symbolon serve ended before it was ready, with status ${child.exitCode}`)
}
