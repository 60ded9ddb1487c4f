import { spawn } from 'node:child_process'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { Attack, AttackTargets } from './attack.ts'

/** The targets of attacks; concurrent attackers each have a stage of their own. */
export class AttackStage {
  readonly #canary: string
  readonly #folder = mkdtempSync(path.join(tmpdir(), 'symbolon-attacks-'))
  readonly #secretFile = path.join(this.#folder, 'secret')
  readonly #unixSocket = path.join(this.#folder, 'socket')
  readonly #abstractSocket: string
  readonly #answer: Server
  readonly #sink: Socket
  #packets = 0
  #marks = 0
  #victim = startVictim()

  static async open(name: string, canary: string): Promise<AttackStage> {
    const stage = new AttackStage(name, canary)
    const servers = [stage.#answer.listen(0, '::')]
    for (const it of [stage.#unixSocket, stage.#abstractSocket]) {
      servers.push(createServer((socket) => socket.on('error', ignore).end(canary)).listen(it))
    }
    const bound = once(stage.#sink.bind(0, '127.0.0.1'), 'listening')
    await Promise.all([bound, ...servers.map((it) => once(it, 'listening'))])
    return stage
  }

  private constructor(name: string, canary: string) {
    this.#canary = canary
    this.#abstractSocket = `\0symbolon-attacks-${name}`
    writeFileSync(this.#secretFile, canary, { mode: 0o600 })
    this.#answer = createServer((socket) => {
      socket.on('error', () => socket.destroy()).end(`HTTP/1.1 200 OK\r\n\r\n`)
    })
    this.#sink = createSocket('udp4').on('message', (message) => {
      if (message.equals(MARK)) this.#marks += 1
      else this.#packets += 1
    })
  }

  /** Returns whether the attack, made by `how`, was seen to succeed where that is seen. */
  async seen(attack: Attack, how: (attack: Attack) => Promise<unknown>): Promise<boolean> {
    if (this.#victim.exitCode !== null || this.#victim.signalCode !== null) {
      this.#victim = startVictim()
    }
    this.#packets = this.#marks = 0
    const returned = await how(attack)
    if (attack.seen === 'packets') return await this.#wasSentPackets()
    if (attack.seen === 'victim') return !(await answers(this.#victim))
    return Boolean(returned)
  }

  /** Packets arrive in order: once ours is here, so are all that were sent before. */
  async #wasSentPackets(): Promise<boolean> {
    const { port, address } = this.#sink.address()
    const own = createSocket('udp4')
    while (this.#marks === 0) {
      own.send(MARK, port, address)
      await new Promise((resolve) => void setTimeout(resolve, 10))
    }
    own.close()
    return this.#packets > 0
  }

  surroundings(): AttackTargets {
    return {
      victim: this.#victim.pid!,
      secretFile: this.#secretFile,
      folder: this.#folder,
      port: (this.#answer.address() as AddressInfo).port,
      udpPort: this.#sink.address().port,
      unixSocket: this.#unixSocket,
      abstractSocket: this.#abstractSocket,
      canary: this.#canary,
    }
  }

  close(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

const MARK = Buffer.from('from the stage itself')

/** Whether the victim repeats a byte that it is sent: one that was sent a signal before dies of that first. */
async function answers(victim: VictimProcess): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const [answer, end] = [(): void => resolve(true), (): void => resolve(false)]
  victim.stdout.once('data', answer)
  victim.once('exit', end)
  if (victim.exitCode !== null || victim.signalCode !== null) end()
  else victim.stdin.write('x')
  const answered = await promise
  victim.stdout.off('data', answer)
  victim.off('exit', end)
  return answered
}

type VictimProcess = ReturnType<typeof startVictim>

function startVictim() {
  const victim = spawn('/bin/cat', { stdio: ['pipe', 'pipe', 'ignore'] })
  victim.stdin.on('error', ignore)
  return victim
}

function ignore(): void {}
