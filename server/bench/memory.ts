import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { load, postBytes } from './load.ts'
import { ARRAY_OF_100 } from './rows.ts'

const PROGRAM = fileURLToPath(new URL('../bin/symbolon.cjs', import.meta.url))

/**
 * Resident bytes of the program as an operator starts it, after at least `tokens` tokens came in as arrays
 * of a hundred.
 */
export async function measureMemory(tokens: number): Promise<{ bytes: number; tokens: number }> {
  const folder = mkdtempSync(join(tmpdir(), 'symbolon-memory-'))
  const env = { ...process.env, SYMBOLON_DATA_DIR: folder, SYMBOLON_PORT: '0' }
  const init = spawnSync(process.execPath, [PROGRAM, 'init', '--json'], { env, encoding: 'utf8' })
  const { api_key: management } = JSON.parse(init.stdout) as { api_key: string }
  const child = spawn(process.execPath, [PROGRAM, 'serve'], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    const [ready] = (await once(child.stdout, 'data')) as [Buffer]
    child.stdout.resume()
    const port = Number(/:(\d+)\s*$/m.exec(ready.toString())![1])
    const request = postBytes('/tokenize', ARRAY_OF_100, {
      'bt-api-key': await tokenKey(port, management),
    })
    const options = { port, connections: 16, warmupMs: 0, measureMs: 2000, request: () => request }
    let made = 0
    while (made < tokens) made += (await load({ ...options, status: 200 })).requests * 100
    const status = readFileSync(`/proc/${child.pid!}/status`, 'utf8')
    return { bytes: Number(/VmRSS:\s+(\d+)/.exec(status)![1]) * 1024, tokens: made }
  } finally {
    child.kill('SIGTERM')
    await once(child, 'exit')
    rmSync(folder, { recursive: true, force: true })
  }
}

async function tokenKey(port: number, management: string): Promise<string> {
  const reply = await fetch(`http://127.0.0.1:${port}/applications`, {
    method: 'POST',
    headers: { 'BT-API-KEY': management, 'Content-Type': 'application/json' },
    body: JSON.stringify({ name: 'bench', type: 'private', permissions: ['token:create'] }),
  })
  return ((await reply.json()) as { key: string }).key
}
