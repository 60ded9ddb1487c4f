import { spawn, type ChildProcess } from 'node:child_process'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { Attack, Surroundings } from './attack.ts'

/** What attacks are made on, of its own for each that makes them at the same time. */
export class Stage {
  readonly #canary: string
  readonly #folder = mkdtempSync(path.join(tmpdir(), 'symbolon-attacks-'))
  readonly #secretFile = path.join(this.#folder, 'secret')
  readonly #unixSocket = path.join(this.#folder, 'socket')
  readonly #abstractSocket: string
  readonly #answer: Server
  readonly #sink: Socket
  #packets = 0
  #victim = startVictim()

  static async open(name: string, canary: string): Promise<Stage> {
    const stage = new Stage(name, canary)
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
    this.#sink = createSocket('udp4').on('message', () => (this.#packets += 1))
  }

  /** Returns whether the attack, made by `how`, was seen to succeed where that is seen. */
  async seen(attack: Attack, how: (attack: Attack) => Promise<unknown>): Promise<boolean> {
    if (this.#victim.exitCode !== null || this.#victim.signalCode !== null) {
      this.#victim = startVictim()
    }
    this.#packets = 0
    const returned = await how(attack)
    // What was sent is there by the next turn of the loop: loopback delivers at once.
    await new Promise((resolve) => void setImmediate(resolve))
    await new Promise((resolve) => void setImmediate(resolve))
    if (attack.seen === 'packets') return this.#packets > 0
    if (attack.seen === 'victim') return await isDying(this.#victim)
    return Boolean(returned)
  }

  surroundings(): Surroundings {
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

/** A signal that was sent has ended it before the next process could be started and ended. */
async function isDying(child: ChildProcess): Promise<boolean> {
  await once(spawn('/bin/true'), 'close')
  return child.signalCode !== null
}

function startVictim(): ChildProcess {
  return spawn('/bin/sleep', ['1000'], { stdio: 'ignore' })
}

function ignore(): void {}
