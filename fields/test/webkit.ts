/** Debian's WebKitGTK, in a window on a display of its own, over WebDriver. */
import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process'
import { once } from 'node:events'
import { globSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { Builder, Key, Origin, type WebDriver, type WebElement } from 'selenium-webdriver'
import { pathOfProgram } from '../../server/test/kit/programs.ts'
import { STEP_MS_MAX, type Engine } from './engine.ts'

/** It keeps the page that it leaves as it is, for the Back button. */
export type WebKitEngine = Engine & { readonly back: () => Promise<void> }

/** Neither the display, nor the driver, nor the home folder outlives it. */
export async function openWebKit(): Promise<WebKitEngine> {
  const home = mkdtempSync(join(tmpdir(), 'symbolon-webkit-'))
  const processes: ChildProcess[] = []
  const close = async (): Promise<void> => {
    for (const it of processes.toReversed()) await end(it)
    rmSync(home, { recursive: true, maxRetries: 5 })
  }
  try {
    const display = startDisplay()
    processes.push(display)
    const port = await freePort()
    const service = startDriver(port, home, await nameOf(display))
    processes.push(service)
    const url = `http://127.0.0.1:${port}`
    await answers(`${url}/status`, service)
    const driver = await openSession(url)
    const quit = async (): Promise<void> => {
      await driver.quit()
      await close()
    }
    return { ...engineOn(driver), back: async () => await driver.navigate().back(), close: quit }
  } catch (error) {
    await close()
    throw error
  }
}

/** The server's address keeps selenium-webdriver from looking for a driver of its own, which it would download. */
async function openSession(url: string): Promise<WebDriver> {
  const driver = await new Builder()
    .usingServer(url)
    .withCapabilities({
      browserName: 'MiniBrowser',
      'webkitgtk:browserOptions': { binary: miniBrowser(), args: ['--automation'] },
    })
    .build()
  await driver.manage().setTimeouts({ pageLoad: STEP_MS_MAX, script: STEP_MS_MAX })
  return driver
}

function engineOn(driver: WebDriver): Omit<Engine, 'close'> {
  const evaluate: Engine['evaluate'] = async (toCall, value) =>
    await driver.executeScript(`return (${String(toCall)})(arguments[0])`, value)
  return {
    open: async (url) => await driver.get(url),
    evaluate,
    evaluateInFrame: async (index, toCall, value) => {
      const iframe = await evaluate((it: number) => document.querySelectorAll('iframe')[it], index)
      await driver.switchTo().frame(iframe as WebElement)
      try {
        return await evaluate(toCall, value)
      } finally {
        await driver.switchTo().defaultContent()
      }
    },
    click: async ({ x, y }) => {
      const at = { origin: Origin.VIEWPORT, x: Math.round(x), y: Math.round(y), duration: 0 }
      await driver.actions({ async: true }).move(at).press().release().perform()
    },
    type: async (text) => {
      for (const it of text) await driver.actions({ async: true }).keyDown(it).keyUp(it).perform()
    },
    press: async (key, ...held) => {
      const code = KEYS[key] ?? key
      let actions = driver.actions({ async: true })
      for (const it of held) actions = actions.keyDown(KEYS[it]!)
      actions = actions.keyDown(code).keyUp(code)
      for (const it of held) actions = actions.keyUp(KEYS[it]!)
      await actions.perform()
    },
    screenshot: async () => Buffer.from(await driver.takeScreenshot(), 'base64'),
  }
}

const KEYS: Readonly<Record<string, string>> = {
  ArrowLeft: Key.ARROW_LEFT,
  Backspace: Key.BACK_SPACE,
  Control: Key.CONTROL,
  Delete: Key.DELETE,
  Enter: Key.ENTER,
  Shift: Key.SHIFT,
  Tab: Key.TAB,
}

/** Debian has it in no folder of PATH. */
function miniBrowser(): string {
  const [found] = globSync('/usr/lib/*/webkit2gtk-4.*/MiniBrowser')
  if (found === undefined) throw new Error('webkit2gtk-driver has no MiniBrowser')
  return found
}

/** Starts a display that no other uses: the X server chooses its number, and writes it to a pipe. */
function startDisplay(): ChildProcess {
  const stdio: StdioOptions = ['ignore', 'ignore', 'ignore', 'pipe']
  const options = ['-displayfd', '3', '-screen', '0', '1280x1024x24', '-nolisten', 'tcp']
  return spawn(pathOfProgram('Xvfb'), options, { stdio })
}

/** Reads the whole line: Xvfb writes its end separately, and exits if the pipe is closed by then. */
async function nameOf(display: ChildProcess): Promise<string> {
  const pipe = display.stdio[3] as Readable
  const lines = createInterface(pipe)
  const [number] = (await Promise.race([
    once(lines, 'line'),
    once(lines, 'close').then(() => Promise.reject(new Error('Xvfb has started no display'))),
  ])) as [string]
  return `:${number}`
}

function startDriver(port: number, home: string, display: string): ChildProcess {
  return spawn(pathOfProgram('WebKitWebDriver'), [`--port=${port}`], {
    stdio: 'ignore',
    env: {
      PATH: process.env['PATH'],
      HOME: home,
      XDG_RUNTIME_DIR: home,
      DISPLAY: display,
      GDK_BACKEND: 'x11',
      // Settings and accessibility would need a message bus.
      GSETTINGS_BACKEND: 'memory',
      NO_AT_BRIDGE: '1',
      // The display has no graphics card.
      WEBKIT_DISABLE_DMABUF_RENDERER: '1',
    },
  })
}

/** Resolves once a server answers there. */
async function answers(url: string, server: ChildProcess): Promise<void> {
  while (server.exitCode === null) {
    try {
      await fetch(url)
      return
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  throw new Error(`Ended with ${server.exitCode}, before it answered at ${url}`)
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

async function end(it: ChildProcess): Promise<void> {
  if (it.exitCode !== null || it.signalCode !== null) return
  const ended = once(it, 'exit')
  it.kill()
  await ended
}
