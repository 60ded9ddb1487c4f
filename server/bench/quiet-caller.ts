import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { CARD } from './rows.ts'
import { median, renderTable } from './table.ts'

/** What a caller that sends one card every 20 ms sees, in one situation of one checkout; medians of the rounds. */
export interface QuietFigures {
  readonly checkout: string
  readonly situation: Situation
  readonly p50Ms: number
  readonly p99Ms: number
  readonly longestMs: number
  readonly failures: number
  /** p99 over the p99 alone in the same round. */
  readonly overAlone: number
  /** Responses that the strangers had meanwhile, a second. */
  readonly strangersPerSecond: number
}

export const SITUATIONS = ['alone', 'document', 'nowhere', 'bodies'] as const
export type Situation = (typeof SITUATIONS)[number]

export const BESIDE: Readonly<Record<Situation, string>> = {
  alone: 'alone',
  document: 'beside 200 x 3000 requests for the OpenAPI document, nothing read',
  nowhere: 'beside 200 x 3000 requests that lead nowhere',
  bodies: 'beside the largest bodies of a public key',
}

export function renderQuiet(figures: readonly QuietFigures[]): string {
  const headings = ['p50 ms', 'p99 ms', 'longest ms', 'p99 over alone', 'failures', 'strangers/s']
  return renderTable(
    ['card every 20 ms', ...headings],
    figures.map((it) => [
      `${it.checkout}: ${BESIDE[it.situation]}`,
      it.p50Ms.toFixed(1),
      it.p99Ms.toFixed(1),
      it.longestMs.toFixed(1),
      it.overAlone.toFixed(2),
      String(it.failures),
      it.strangersPerSecond.toFixed(0),
    ]),
  )
}

const OWN = fileURLToPath(new URL('../..', import.meta.url))
const EVERY_MS = 20
const WARMUP_MS = 1_500

interface MeasuredVault {
  readonly checkout: string
  readonly port: number
  readonly key: string
  readonly publicKey: string
  readonly stop: () => Promise<void>
}

interface Round {
  readonly latencies: readonly number[]
  readonly failures: number
  readonly strangers: number
}

/**
 * Measures the caller alone and beside each kind of strangers, on this checkout and, if `against` names another one, on that in
 * turn, so that a slow minute affects both. Servers, strangers and the caller are separate processes.
 */
export async function measureQuietCaller(
  rounds: number,
  against: string | undefined,
  measureMs: number,
): Promise<QuietFigures[]> {
  const checkouts = against === undefined ? [OWN] : [resolve(against), OWN]
  const subjects: MeasuredVault[] = []
  const measured = new Map<MeasuredVault, Map<Situation, Round[]>>()
  try {
    for (const it of checkouts) subjects.push(await startProgram(it))
    for (const subject of subjects) {
      measured.set(subject, new Map(SITUATIONS.map((it) => [it, []])))
      await measureOnce(subject, 'alone', WARMUP_MS)
    }
    for (let round = 0; round < rounds; round++) {
      for (const situation of SITUATIONS) {
        for (const subject of round % 2 === 0 ? subjects : subjects.toReversed()) {
          const its = await measureOnce(subject, situation, measureMs)
          measured.get(subject)!.get(situation)!.push(its)
        }
      }
    }
  } finally {
    for (const it of subjects) await it.stop()
  }
  return subjects.flatMap((subject) => figuresOf(subject, measured.get(subject)!, measureMs))
}

function figuresOf(
  { checkout }: MeasuredVault,
  measured: ReadonlyMap<Situation, readonly Round[]>,
  measureMs: number,
): QuietFigures[] {
  const alone = measured.get('alone')!.map((it) => quantile(it, 0.99))
  return SITUATIONS.map((situation) => {
    const rounds = measured.get(situation)!
    const p99s = rounds.map((it) => quantile(it, 0.99))
    return {
      checkout,
      situation,
      p50Ms: median(rounds.map((it) => quantile(it, 0.5))),
      p99Ms: median(p99s),
      longestMs: median(rounds.map((it) => quantile(it, 1))),
      failures: rounds.reduce((sum, it) => sum + it.failures, 0),
      overAlone: median(p99s.map((it, round) => it / alone[round]!)),
      strangersPerSecond: median(rounds.map((it) => (it.strangers / measureMs) * 1000)),
    }
  })
}

function quantile({ latencies }: Round, share: number): number {
  return latencies.toSorted((a, b) => a - b)[Math.ceil(latencies.length * share) - 1]!
}

async function measureOnce(
  subject: MeasuredVault,
  situation: Situation,
  ms: number,
): Promise<Round> {
  if (situation === 'alone') return { ...(await sendCards(subject, ms)), strangers: 0 }
  const program = fileURLToPath(new URL('./strangers.ts', import.meta.url))
  const args = [program, situation, String(subject.port), subject.publicKey]
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  await lines.next()
  const cards = await sendCards(subject, ms)
  child.stdin.end()
  const { responses } = JSON.parse((await lines.next()).value as string) as { responses: number }
  await ended(child)
  // What they left behind is not the next one's.
  await sleep(1_000)
  return { ...cards, strangers: responses }
}

/**
 * Sends a card every 20 ms, whether or not the last one was answered, and times each from the moment at which it was due: a
 * stall delays all cards that fall into it.
 */
async function sendCards(
  { port, key }: MeasuredVault,
  ms: number,
): Promise<Omit<Round, 'strangers'>> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1_000 })
  const latencies: number[] = []
  let failures = 0
  const pending: Promise<void>[] = []
  const begin = performance.now()
  for (let due = begin; due < begin + ms; due += EVERY_MS) {
    const early = due - performance.now()
    if (early > 0) await sleep(early)
    pending.push(
      sendCard(agent, port, key).then(
        (status) => {
          latencies.push(performance.now() - due)
          if (status !== 200) failures += 1
        },
        () => void (failures += 1),
      ),
    )
  }
  await Promise.all(pending)
  agent.destroy()
  return { latencies, failures }
}

function sendCard(agent: Agent, port: number, key: string): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const headers = { 'bt-api-key': key, 'content-type': 'application/json' }
  const call = request({
    agent,
    port,
    headers,
    host: '127.0.0.1',
    path: '/tokenize',
    method: 'POST',
  })
  call.on('error', reject)
  call.on('response', (reply) => {
    reply
      .resume()
      .on('end', () => resolve(reply.statusCode!))
      .on('error', reject)
  })
  call.end(CARD)
  return promise
}

/** Starts the program of a checkout as an operator does, with a vault of its own. */
async function startProgram(checkout: string): Promise<MeasuredVault> {
  const folder = mkdtempSync(join(tmpdir(), 'symbolon-quiet-'))
  const env = { ...process.env, SYMBOLON_DATA_DIR: folder, SYMBOLON_PORT: '0' }
  const program = join(checkout, 'server/bin/symbolon.cjs')
  const init = spawnSync(process.execPath, [program, 'init', '--json'], { env, encoding: 'utf8' })
  const { api_key: management } = JSON.parse(init.stdout) as { api_key: string }
  const child = spawn(process.execPath, [program, 'serve'], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let port = 0
  for await (const line of createInterface({ input: child.stdout })) {
    port = Number(/is ready at http:\S+:(\d+)/.exec(line)?.[1] ?? 0)
    if (port !== 0) break
  }
  child.stdout.resume()
  const keyOf = async (type: string): Promise<string> => {
    const reply = await fetch(`http://127.0.0.1:${port}/applications`, {
      method: 'POST',
      headers: { 'BT-API-KEY': management, 'Content-Type': 'application/json' },
      body: JSON.stringify({ name: type, type, permissions: ['token:create'] }),
    })
    return ((await reply.json()) as { key: string }).key
  }
  return {
    checkout,
    port,
    key: await keyOf('private'),
    publicKey: await keyOf('public'),
    stop: async () => {
      child.kill('SIGKILL')
      await ended(child)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
}
