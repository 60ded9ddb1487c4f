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
 *
 * It is started twice: the first time, a checkout strips the types of its source, and what does that stays in memory. A
 * published package has no types, and a second start finds them stripped.
 */
export async function measureMemory(tokens: number): Promise<{ bytes: number; tokens: number }> {
  const folder = mkdtempSync(join(tmpdir(), 'symbolon-memory-'))
  const env = { ...process.env, SYMBOLON_DATA_DIR: folder, SYMBOLON_PORT: '0' }
  const init = spawnSync(process.execPath, [PROGRAM, 'init', '--json'], { env, encoding: 'utf8' })
  const { api_key: management } = JSON.parse(init.stdout) as { api_key: string }
  try {
    await whileServing(env, async () => {})
    return await whileServing(env, async (pid, port) => {
      const key = await tokenKey(port, management)
      const request = postBytes('/tokenize', ARRAY_OF_100, { 'bt-api-key': key })
      const options = {
        port,
        connections: 16,
        warmupMs: 0,
        measureMs: 2000,
        request: () => request,
      }
      let made = 0
      while (made < tokens) made += (await load({ ...options, status: 200 })).requests * 100
      const status = readFileSync(`/proc/${pid}/status`, 'utf8')
      return { bytes: Number(/VmRSS:\s+(\d+)/.exec(status)![1]) * 1024, tokens: made }
    })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Starts the program, does `work` when it is ready, and ends it. */
async function whileServing<Result>(
  env: NodeJS.ProcessEnv,
  work: (pid: number, port: number) => Promise<Result>,
): Promise<Result> {
  const child = spawn(process.execPath, [PROGRAM, 'serve'], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    const [ready] = (await once(child.stdout, 'data')) as [Buffer]
    child.stdout.resume()
    return await work(child.pid!, Number(/:(\d+)\s*$/m.exec(ready.toString())![1]))
  } finally {
    child.kill('SIGTERM')
    await once(child, 'exit')
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
