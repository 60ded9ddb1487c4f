/**
 * The guest's program, inside the walls: receives code, runs it, reports the result. Its first code binds it to one
 * reactor.
 *
 * Nothing here is a security boundary: the code it runs controls all of it. The walls outside protect the service.
 */
import { Socket } from 'node:net'
import { captureOutput } from './capture-output.ts'
import { Connections } from './connections.ts'
import { FRAME, frame, FrameReader, numberedFrame, type Frame } from './frames.ts'
import type { GuestRun, GuestSetUp } from './messages.ts'
import { hideInstallation } from './hide-installation.ts'
import { pathHider } from './hidden-paths.ts'
import { holdImports, loadCode, NoFunction, noFunctionFor } from './modules.ts'
import { openClient } from './open-client.ts'
import { refuseSockets } from './refuse-sockets.ts'
import { replaceSockets } from './sockets.ts'
import { renderThrown } from './thrown.ts'

const CHANNEL = 3
/** Frames of a stack: Node's own ten may all be of a package, and none of the code. */
Error.stackTraceLimit = 50

const channel = new Socket({ fd: CHANNEL, readable: true, writable: true })
const reader = new FrameReader(0xffffffff)
const connections = new Connections((it) => channel.write(it))

let setUp: GuestSetUp | null = null
let code = ''
let configuration = ''
let args = ''
let beginOutput = (): void => {}
let hide = pathHider([])
let loaded: Promise<(req: object) => unknown> | null = null
/** Whether the code has exported its function. */
let exported = false
let running: GuestRun | null = null

channel.on('data', (chunk: Buffer) => {
  for (const it of reader.push(chunk)) take(it)
})
channel.on('close', () => process.exit())
process.on('exit', () => {
  // Small writes to a pipe happen at once.
  if (!exported) answer(FRAME.neverLoaded, renderNoFunction(new NoFunction(EXITED)))
})
process.on('uncaughtException', (error) => {
  if (running === null) process.exit(1)
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
    if (setUp.checks) hideInstallation(hide, setUp.builtIns)
    holdImports(setUp, hide)
    beginOutput = captureOutput(setUp.outputBytesMax, (line) => {
      if (running !== null) channel.write(numberedFrame(FRAME.output, running.run, line))
    })
    channel.write(frame(FRAME.ready))
  }
  if (kind === FRAME.code) code = text
  if (kind === FRAME.configuration) configuration = text
  if (kind === FRAME.args) args = text
  if (kind === FRAME.run) {
    running = JSON.parse(text)
    beginOutput()
    void run()
  }
}

async function run(): Promise<void> {
  const { errorBytesMax, resultBytesMax, checks } = setUp!
  const { apiKey } = running!
  let call: (req: object) => unknown
  try {
    loaded ??= loadCode(code, checks ? hide : null)
    call = await loaded
    exported = true
  } catch (error) {
    answer(FRAME.noFunction, renderNoFunction(error))
    return
  }
  try {
    const result = await call({
      args: JSON.parse(args),
      configuration: JSON.parse(configuration),
      bt: openClient(apiKey, setUp!),
    })
    const json = JSON.stringify(result) ?? 'null'
    if (Buffer.byteLength(json) > resultBytesMax) {
      throw new RangeError(`The result is larger than ${resultBytesMax} bytes`)
    }
    answer(FRAME.returned, json)
  } catch (error) {
    answer(FRAME.threw, renderThrown(error, errorBytesMax))
  }
}

const EXITED = 'The code ended its process before it exported a function'

function renderNoFunction(thrown: unknown): string {
  const reason = noFunctionFor(thrown)
  return renderThrown(reason, setUp!.errorBytesMax, reason.position)
}

function answer(kind: number, text: string): void {
  if (running === null) return
  channel.write(numberedFrame(kind, running.run, text))
  running = null
}
