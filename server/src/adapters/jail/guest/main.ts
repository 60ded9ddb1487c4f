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
import { holdImports, loadCode, NoFunction } from './modules.ts'
import { openClient } from './open-client.ts'
import { refuseSockets } from './refuse-sockets.ts'
import { replaceSockets } from './sockets.ts'
import { renderThrown } from './thrown.ts'

const CHANNEL = 3

const channel = new Socket({ fd: CHANNEL, readable: true, writable: true })
const reader = new FrameReader(0xffffffff)
const connections = new Connections((it) => channel.write(it))

let setUp: GuestSetUp | null = null
let code = ''
let configuration = ''
let args = ''
let beginOutput = (): void => {}
let loaded: Promise<(req: object) => unknown> | null = null
let running: GuestRun | null = null

channel.on('data', (chunk: Buffer) => {
  for (const it of reader.push(chunk)) take(it)
})
channel.on('close', () => process.exit())
process.on('uncaughtException', (error) => {
  if (running === null) process.exit(1)
  answer(FRAME.crashed, renderThrown(error, setUp!.errorBytesMax))
})

function take(it: Frame): void {
  if (connections.take(it)) return
  const { kind } = it
  const text = it.payload.toString()
  if (kind === FRAME.setUp) {
    setUp = JSON.parse(text) as GuestSetUp
    replaceSockets(connections, setUp.authorities)
    if (setUp.withoutSockets) refuseSockets()
    holdImports(setUp)
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
  const { errorBytesMax, resultBytesMax } = setUp!
  const { apiKey } = running!
  try {
    loaded ??= loadCode(code)
    const call = await loaded
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
    if (error instanceof NoFunction) answer(FRAME.noFunction, error.message)
    else answer(FRAME.threw, renderThrown(error, errorBytesMax))
  }
}

function answer(kind: number, text: string): void {
  if (running === null) return
  channel.write(numberedFrame(kind, running.run, text))
  running = null
}
