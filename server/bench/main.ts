/**
 * `npm run bench`: what the service costs, as ratios between things measured side by side in one run.
 *
 * `--rounds N` (5 by default), `--only cards|arrays|audit|sync|fairness|quiet|search|transactions|proxy|closing|code|storm|postgres|memory`,
 * `--tokens N` in the vault for search and memory (1,000,000 by default), `--against DIR` another checkout that is measured in turn,
 * and `--ms N` for how long in each situation, both for quiet. Exits with 1 when a gate is missed. Machines differ and are shared; ratios within a run are what may be compared.
 */
import { parseArgs } from 'node:util'
import { measureClosing } from './closing.ts'
import { measureFairness } from './fairness.ts'
import { measureMemory } from './memory.ts'
import { startDatabase } from './postgres-database.ts'
import { measureCards, measureTwoServers, type Served } from './postgres-serving.ts'
import { measureStoring, type StoringFigures } from './postgres-storing.ts'
import { measureProxying } from './proxying.ts'
import {
  ARRAY_OF_100,
  CARD,
  CARD_WITH_CVC,
  measure,
  measureRawInsert,
  SERVER_CORE,
  type Measured,
} from './rows.ts'
import { BESIDE, measureQuietCaller, renderQuiet, SITUATIONS } from './quiet-caller.ts'
import { measureRunningCode } from './running-code.ts'
import { measureSearching } from './search.ts'
import { measureStorm } from './storm.ts'
import { off } from './subjects.ts'
import { measureCommits } from './transactions.ts'
import { holds, median, renderGoals, renderMachine, renderTable, type Goal } from './table.ts'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    only: { type: 'string' },
    tokens: { type: 'string', default: '1000000' },
    against: { type: 'string' },
    ms: { type: 'string', default: '5000' },
  },
})
const rounds = Number(values.rounds)
const goals: Goal[] = []

/** Of a core, that each of two servers has: the database and the callers are to have what they need besides. */
const SERVER_SHARE = 0.5

print(renderMachine())
if (wanted('cards')) await off(SERVER_CORE, cards)
if (wanted('arrays')) await off(SERVER_CORE, arrays)
if (wanted('audit')) await off(SERVER_CORE, audit)
if (wanted('sync')) await off(SERVER_CORE, sync)
if (wanted('fairness')) await fairness()
if (wanted('quiet')) await quiet()
if (wanted('search')) await off(SERVER_CORE, search)
if (wanted('transactions')) await transactions()
if (wanted('proxy')) await off(SERVER_CORE, proxy)
if (wanted('closing')) await closing()
if (wanted('code')) await code()
if (wanted('storm')) await storm()
if (wanted('postgres')) await postgres()
if (wanted('memory')) await memory()
print(renderGoals(goals))
if (!goals.every(holds)) process.exitCode = 1

function wanted(part: string): boolean {
  return values.only === undefined || values.only === part
}

async function cards(): Promise<void> {
  const measured = await measure(
    [
      { name: 'echo', kind: 'echo', body: CARD, connections: 64 },
      { name: 'card, unstored', kind: 'unstored', body: CARD, connections: 64 },
      { name: 'card', kind: 'durable', body: CARD, connections: 64 },
      { name: 'card with cvc', kind: 'durable', body: CARD_WITH_CVC, connections: 64 },
      { name: 'echo, alone', kind: 'echo', body: CARD, connections: 1 },
      { name: 'card, alone', kind: 'durable', body: CARD, connections: 1 },
    ],
    rounds,
  )
  printMeasured(measured, 'requests/s')
  const [echo, unstored, card, cvc] = pick(
    measured,
    'echo',
    'card, unstored',
    'card',
    'card with cvc',
  )
  goals.push(
    atMost('card, CPU over echo', card.cpuUs / echo.cpuUs, 'x', 2.5, 1.8),
    atMost('card with cvc, CPU over echo', cvc.cpuUs / echo.cpuUs, 'x', 3, null),
    atLeast(
      'card, durable over unstored',
      (card.perSecond / unstored.perSecond) * 100,
      '%',
      65,
      85,
    ),
  )
}

async function arrays(): Promise<void> {
  const raws: number[] = []
  const measured = await measure(
    [{ name: 'array of 100', kind: 'durable', body: ARRAY_OF_100, connections: 16 }],
    rounds,
    () => raws.push(measureRawInsert()),
  )
  const raw = median(raws)
  printMeasured(measured, 'requests/s')
  print(`raw bulk insert: ${Math.round(raw)} rows/s`)
  const [array] = pick(measured, 'array of 100')
  goals.push(
    atLeast('array, tokens over raw rows', ((array.perSecond * 100) / raw) * 100, '%', 33, 60),
  )
}

async function audit(): Promise<void> {
  const measured = await measure(
    [
      { name: 'card, recorded', kind: 'durable', body: CARD, connections: 64 },
      { name: 'card, unrecorded', kind: 'unrecorded', body: CARD, connections: 64 },
      { name: 'array, recorded', kind: 'durable', body: ARRAY_OF_100, connections: 16 },
      { name: 'array, unrecorded', kind: 'unrecorded', body: ARRAY_OF_100, connections: 16 },
    ],
    rounds,
  )
  printMeasured(measured, 'requests/s')
  const [card, cardWithout, array, arrayWithout] = pick(
    measured,
    'card, recorded',
    'card, unrecorded',
    'array, recorded',
    'array, unrecorded',
  )
  const share = (on: Measured, off: Measured): number => (on.perSecond / off.perSecond) * 100
  goals.push(
    atLeast('card, recorded over unrecorded', share(card, cardWithout), '%', 85, 92),
    atLeast('array, recorded over unrecorded', share(array, arrayWithout), '%', 85, 95),
  )
}

async function sync(): Promise<void> {
  const measured = await measure(
    [
      { name: 'shared commits, +1 ms', kind: 'slow-sync', body: CARD, connections: 64 },
      { name: 'one commit each, +1 ms', kind: 'slow-sync-single', body: CARD, connections: 64 },
    ],
    rounds,
  )
  printMeasured(measured, 'requests/s')
  const [shared, single] = pick(measured, 'shared commits, +1 ms', 'one commit each, +1 ms')
  goals.push(
    atLeast('shared over single commits', shared.perSecond / single.perSecond, 'x', 10, 16),
  )
}

async function fairness(): Promise<void> {
  const { quietP99Us, besideP99Us, bulkPerSecond } = await measureFairness(rounds)
  print(
    `card p99 alone ${quietP99Us} us, beside payloads of 10000 ${besideP99Us} us ` +
      `(${bulkPerSecond.toFixed(1)} of them a second)\n`,
  )
  goals.push(atMost('card p99 beside bulk over alone', besideP99Us / quietP99Us, 'x', 3, null))
}

/** One card every 20 ms, alone and beside strangers. The p99 alone is of the same round. */
async function quiet(): Promise<void> {
  const figures = await measureQuietCaller(rounds, values.against, Number(values.ms))
  print(`\n${renderQuiet(figures)}\n`)
  // The last ones are of this checkout.
  for (const it of figures.slice(-SITUATIONS.length)) {
    if (it.situation === 'alone') continue
    goals.push(atMost(`card p99 ${BESIDE[it.situation]}`, it.overAlone, 'x', 3, null))
  }
}

async function search(): Promise<void> {
  const count = Number(values.tokens)
  const it = await measureSearching(count, rounds)
  const rows: [name: string, us: number][] = [
    ['point read', it.pointRead],
    ['lone data term', it.dataTerm],
    ['lone fingerprint term', it.fingerprintTerm],
    ['list, page 1', it.firstPage],
    [`list, page ${it.far}`, it.farPage],
  ]
  const cells = rows.map(([name, us]) => [name, us.toFixed(1)])
  print(`\n${renderTable([`of ${count} tokens`, 'CPU us'], cells)}\n`)
  goals.push(
    atMost('data term over point read', it.dataTerm / it.pointRead, 'x', 3, null),
    atMost('fingerprint term over point read', it.fingerprintTerm / it.pointRead, 'x', 3, null),
    atMost(`page ${it.far} over page 1`, it.farPage / it.firstPage, 'x', 5, null),
  )
}

async function transactions(): Promise<void> {
  const { emptyP99Us, largeP99Us, quietP99Us, besideP99Us } = await measureCommits(rounds)
  print(
    `commit p99 of nothing ${emptyP99Us} us, of 100000 tokens ${largeP99Us} us; ` +
      `card p99 alone ${quietP99Us} us, beside such commits ${besideP99Us} us\n`,
  )
  goals.push(
    atMost('commit p99 of 100000 tokens over empty', largeP99Us / emptyP99Us, 'x', 20, null),
    atMost('card p99 beside commits over alone', besideP99Us / quietP99Us, 'x', 2, null),
  )
}

async function proxy(): Promise<void> {
  const { direct, apart, bare, recording, vault, growth } = await measureProxying(rounds)
  const cells = [direct, apart, bare, recording, vault].map((it) => [
    it.name,
    it.p50Us.toFixed(0),
    it.cpuUs.toFixed(1),
    it.largeMs.toFixed(0),
  ])
  print(`\n${renderTable(['median', 'p50 us', 'CPU us', '10 MiB, ms'], cells)}\n`)
  goals.push(
    atMost('proxied, added p50', (vault.p50Us - direct.p50Us) / 1000, ' ms', 0.4, 0.2),
    atMost('proxied, CPU over direct', vault.cpuUs / direct.cpuUs, 'x', 5, 3.5),
    atMost('download, growth of memory', growth / 1e6, ' MB', 32, 16),
  )
}

async function closing(): Promise<void> {
  const measured = await measureClosing()
  const rows = measured.map((it) => [
    `${it.method}, ${it.concurrent} at a time`,
    String(it.requests),
    String(it.failures),
    String(it.connections),
  ])
  print(
    `\n${renderTable(['to a destination that closes', 'requests', '502s', 'connections'], rows)}\n`,
  )
  for (const { method, concurrent, failures } of measured) {
    goals.push(atMost(`${method}, ${concurrent} at a time: 502s`, failures, '', 1, 0))
  }
}

async function code(): Promise<void> {
  const it = await measureRunningCode(rounds)
  const rows: [name: string, value: string][] = [
    ['warm run, p50', `${it.warmP50Us.toFixed(0)} us`],
    ['warm run, p99', `${it.warmP99Us.toFixed(0)} us`],
    ['first run, p50', `${(it.prewarmedP50Us / 1000).toFixed(1)} ms`],
    ['run, CPU of the service', `${it.runUs.toFixed(1)} us`],
    ['invocation, CPU of the service', `${it.invokeUs.toFixed(1)} us`],
    ['token detokenized, CPU', `${it.detokenizeUs.toFixed(1)} us`],
  ]
  print(`\n${renderTable(['code', 'median'], rows)}\n`)
  const own = (it.invokeUs - it.runUs) / it.detokenizeUs
  goals.push(
    atMost('warm run, p50', it.warmP50Us / 1000, ' ms', 0.25, null),
    atMost('warm run, p99', it.warmP99Us / 1000, ' ms', 2, null),
    atMost('first run, p50', it.prewarmedP50Us / 1000, ' ms', 10, null),
    atMost('invocation less its run, CPU over detokenize', own, 'x', 2, null),
    atMost('memory of a warm process', it.privateBytes / 1e6, ' MB', 14, null),
    atLeast('warm processes in a GiB', 2 ** 30 / it.privateBytes, '', 60, null),
    atMost('end after the deadline, at worst', it.lateMs, ' ms', 50, null),
    atMost('warm processes, CPU while idle', it.idleTicks * 10, ' ms', 0, null),
  )
}

async function storm(): Promise<void> {
  const { quietP99Us, besideP99Us, failures, answers } = await measureStorm(rounds)
  const told = Object.entries(answers).map(([status, count]) => `${count} with ${status}`)
  print(
    `card p99 alone ${quietP99Us} us, beside another tenant's storm ${besideP99Us} us; ` +
      `the storm was answered ${told.join(', ')}\n`,
  )
  goals.push(
    atMost('card p99 beside a storm over alone', besideP99Us / quietP99Us, 'x', 2, null),
    atMost('cards that failed meanwhile', failures, '', 0, null),
  )
}

/** A ratio of two rows is one of what a clock on the wall saw: on two cores the database is in the servers' way. */
async function postgres(): Promise<void> {
  const cluster = await startDatabase()
  try {
    const it = await measureStoring(cluster, rounds)
    printStored(Object.values(it))
    const faster = it.insertedTogether.perSecond / it.insertedAlone.perSecond
    const later = it.insertedTogether.p99Us / it.insertedAlone.p99Us
    const read = it.readTogether.perSecond / it.readAlone.perSecond
    const [sqlite, own] = await measureCards(cluster, rounds)
    const free = (await measureTwoServers(cluster, rounds, null))!
    const shared = await measureTwoServers(cluster, rounds, SERVER_SHARE)
    printServed([sqlite, own, ...free, ...(shared ?? [])])
    const [one, two] = shared ?? free
    goals.push(
      atLeast(
        'card (64 calls), PostgreSQL over SQLite',
        own.perSecond / sqlite.perSecond,
        'x',
        0.7,
        0.9,
      ),
      atLeast('inserts together over one each (32 clients)', faster, 'x', 2, 3),
      atMost('the same, p99', later, 'x', 1, null),
      atLeast('reads together over one each (32 clients)', read, 'x', 2, 3.5),
      atLeast(
        `array (32 calls), two servers over one${shared === null ? '' : ', half a core each'}`,
        two.perSecond / one.perSecond,
        'x',
        1.5,
        null,
      ),
    )
  } finally {
    await cluster.stop()
  }
}

async function memory(): Promise<void> {
  const { bytes, tokens } = await measureMemory(Number(values.tokens))
  print(`resident after ${tokens} tokens: ${(bytes / 1e6).toFixed(0)} MB\n`)
  goals.push(atMost('resident memory', bytes / 1e6, ' MB', 150, null))
}

function printMeasured(measured: ReadonlyMap<string, Measured>, rate: string): void {
  print(
    `\n${renderTable(
      ['median', rate, 'CPU us', 'p50 us', 'p99 us'],
      [...measured.values()].map((it) => [
        it.name,
        String(Math.round(it.perSecond)),
        it.cpuUs.toFixed(1),
        String(it.p50Us),
        String(it.p99Us),
      ]),
    )}\n`,
  )
}

function printStored(stored: readonly StoringFigures[]): void {
  const cells = stored.map(({ name, perSecond, p50Us, p99Us }) => {
    return [name, String(Math.round(perSecond)), String(p50Us), String(p99Us)]
  })
  print(
    `\n${renderTable(['PostgreSQL, 32 clients, median', 'a second', 'p50 us', 'p99 us'], cells)}\n`,
  )
}

function printServed(served: readonly Served[]): void {
  const cells = served.map((it) => [
    it.name,
    String(Math.round(it.perSecond)),
    it.serverUs.toFixed(1),
    it.databaseUs.toFixed(1),
    String(it.p50Us),
    String(it.p99Us),
  ])
  const headings = ['median', 'requests/s', 'CPU us', 'CPU us, database', 'p50 us', 'p99 us']
  print(`\n${renderTable(headings, cells)}\n`)
}

function pick<Names extends string[]>(
  measured: ReadonlyMap<string, Measured>,
  ...names: Names
): { [At in keyof Names]: Measured } {
  return names.map((name) => measured.get(name)!) as { [At in keyof Names]: Measured }
}

function atLeast(
  name: string,
  value: number,
  unit: string,
  gate: number,
  aim: number | null,
): Goal {
  return { name, value, unit, atLeast: true, gate, aim }
}

function atMost(name: string, value: number, unit: string, gate: number, aim: number | null): Goal {
  return { name, value, unit, atLeast: false, gate, aim }
}

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}
