/**
 * The guest's program, inside the walls: receives code, runs it, reports the result. Its first code binds it to one
 * reactor.
 *
 * Nothing here is a security boundary: the code it runs controls all of it. The walls outside protect the service.
 */
import { createRequire } from 'node:module'
import { Socket } from 'node:net'
import { BetweenRuns } from './between-runs.ts'
import { captureOutput, type CapturedOutput } from './capture-output.ts'
import { Connections } from './connections.ts'
import { FRAME, frame, FrameReader, numberedFrame, type Frame } from './frames.ts'
import type { GuestRun, GuestSetUp } from './messages.ts'
import { hideInstallation } from './hide-installation.ts'
import { pathHider } from './hidden-paths.ts'
import { holdImports, loadCode, NoFunction, noFunctionFor } from './modules.ts'
import { openClient } from './open-client.ts'
import { PendingCallbacks } from './pending-callbacks.ts'
import { countRegistrations } from './registrations.ts'
import { refuseSockets } from './refuse-sockets.ts'
import { replaceSockets } from './sockets.ts'
import { RunTraces } from './run-traces.ts'
import { renderThrown } from './thrown.ts'
import { replaceProcessCalls } from './process-calls.ts'
import { WatchedGlobals } from './watched-globals.ts'
import { writeNow } from './write-now.ts'

const CHANNEL = 3
/** Equals REACTOR_LEFTOVER_CHARS_MAX, which the host enforces. */
const LEFTOVER_CHARS_MAX = 200
/** Frames of a stack: Node's own ten may all be of a package, and none of the code. */
Error.stackTraceLimit = 50

// Taken before any code of a reactor can replace them.
const { parse, stringify } = JSON
const byteLength = Buffer.byteLength.bind(Buffer)
const requireBuiltIn = createRequire(import.meta.url)

const pending = new PendingCallbacks()
pending.watch()
const channel = new Socket({ fd: CHANNEL, readable: true, writable: true })
const reader = new FrameReader(0xffffffff)
const connections = new Connections((it) => channel.write(it))
const globals = new WatchedGlobals()
const traces = new RunTraces()
const betweenRuns = new BetweenRuns(channel, connections, pending, globals)

let setUp: GuestSetUp | null = null
let code = ''
let configuration = ''
let args = ''
let output: CapturedOutput = { accept: () => {}, begin: () => {}, end: () => {} }
let hide = pathHider([])
let loaded: Promise<(req: object) => unknown> | null = null
/** Whether the code has exported its function. */
let exported = false
let running: GuestRun | null = null
let lastRun = 0

channel.on('data', (chunk: Buffer) => {
  for (const it of reader.push(chunk)) take(it)
})
channel.on('close', () => process.exit())
process.on('exit', () => {
  // Small writes to a pipe happen at once.
  if (!exported) answer(FRAME.neverLoaded, renderNoFunction(new NoFunction(EXITED)))
})
process.on('uncaughtException', (error) => {
  // The run that caused it has its answer, and no later run may get this error.
  if (running === null) return report('an error that nothing caught')
  if (exported) answer(FRAME.crashed, renderThrown(error, setUp!.errorBytesMax))
  else answer(FRAME.neverLoaded, renderNoFunction(error))
})

function take(it: Frame): void {
  if (connections.take(it)) return
  const { kind } = it
  const text = it.payload.toString()
  if (kind === FRAME.setUp) {
    setUp = JSON.parse(text) as GuestSetUp
    replaceSockets(connections, setUp.authorities)
    if (setUp.withoutSockets) refuseSockets()
    hide = pathHider(setUp.hidden)
    replaceProcessCalls({ names: setUp.checks })
    if (setUp.checks) {
      const format = hideInstallation(hide, setUp.builtIns, given)
      globals.probe('Error.prepareStackTrace', format)
    }
    holdImports(setUp, hide, (name, url) => {
      if (url.startsWith('node:')) given(name, requireBuiltIn(url))
      else globals.imported(url)
    })
    output = captureOutput(setUp.outputBytesMax, (lines) => {
      if (running !== null) channel.write(numberedFrame(FRAME.output, running.run, lines))
    })
    countRegistrations((name, count) => globals.probe(name, count))
    globals.begin()
    channel.write(frame(FRAME.ready))
  }
  if (kind === FRAME.code) code = text
  if (kind === FRAME.configuration) configuration = text
  if (kind === FRAME.args) args = text
  if (kind === FRAME.run) {
    running = parse(text) as GuestRun
    lastRun = running.run
    output.begin()
    traces.clear()
    void run().then(settle)
  }
}

/** Loads a module for the code. */
function loading(name: string, load: () => unknown): unknown {
  const module = globals.loading(name, load)
  given(name, module)
  return module
}

/** Watches a module that the code gets. */
function given(name: string, module: unknown): void {
  const short = name.replace(/^node:/, '')
  if (setUp!.builtIns.includes(short)) globals.addBuiltIn(short, module)
  else globals.addPackage(name, module)
}

async function run(): Promise<void> {
  const { errorBytesMax, resultBytesMax, checks } = setUp!
  const { apiKey } = running!
  let call: (req: object) => unknown
  try {
    loaded ??= load(checks)
    call = await loaded
  } catch (error) {
    answer(FRAME.noFunction, renderNoFunction(error))
    return
  }
  try {
    const result = await call({
      args: parse(args),
      configuration: parse(configuration),
      bt: openClient(apiKey, setUp!, loading),
    })
    const json = stringify(result) ?? 'null'
    if (byteLength(json) > resultBytesMax) {
      throw new RangeError(`The result is larger than ${resultBytesMax} bytes`)
    }
    answer(FRAME.returned, json)
  } catch (error) {
    answer(FRAME.threw, renderThrown(error, errorBytesMax))
  }
}

async function load(checks: boolean): Promise<(req: object) => unknown> {
  globals.beginFor(code)
  const call = await loadCode(code, checks ? hide : null, loading, (require) =>
    globals.addObject('require', require),
  )
  exported = true
  // Module variables are meant to persist, and so is everything else that the code sets up while it is loaded.
  await globals.accept()
  output.accept()
  traces.accept()
  return call
}

/** Reports to the host whether the process can be used for another run. */
async function settle(): Promise<void> {
  try {
    report((await betweenRuns.leftover()) ?? '')
  } catch {
    report('an error')
  }
}

function report(leftover: string): void {
  channel.write(numberedFrame(FRAME.over, lastRun, leftover.slice(0, LEFTOVER_CHARS_MAX)))
}

const EXITED = 'The code ended its process before it exported a function'

function renderNoFunction(thrown: unknown): string {
  const reason = noFunctionFor(thrown)
  return renderThrown(reason, setUp!.errorBytesMax, reason.position)
}

/** Sends the answer before any other code runs: a leftover must not cost the run's caller its result. */
function answer(kind: number, text: string): void {
  if (running === null) return
  try {
    output.end()
  } catch {
    // The code has replaced what this uses: it loses a line, and its process.
  }
  const { run } = running
  running = null
  const frame = numberedFrame(kind, run, text)
  if (channel.writableLength > 0 || !writeNow(CHANNEL, frame)) channel.write(frame)
}
