/** The shops in examples/, each started by its one command: a card is typed, and the payment provider sees its number. */
import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, describe, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { lacksPrograms, pathOfProgram } from '../../server/test/kit/programs.ts'
import { startService, type RunningService } from '../../server/test/kit/running-service.ts'
import { openPage } from './card-page.ts'
import { openChromium } from './chromium.ts'
import { NUMBER } from './shop.ts'

const PROJECT = path.join(import.meta.dirname, '../..')

describe('an example', { skip: lacksPrograms('chromium', 'python3') }, () => {
  let browser: Browser
  let echo: ExampleProgram
  let vault: RunningService
  before(async () => {
    echo = await start(process.execPath, ['server/test/tour/echo.ts', '--port', '0'])
    vault = await startService({
      SYMBOLON_EGRESS_ALLOW: echo.address.host,
      SYMBOLON_EXTRA_CA_FILE: path.join(PROJECT, 'server/test/kit/certificates/authority.pem'),
    })
    browser = await openChromium()
  })
  after(async () => {
    await browser.close()
    await vault.stop()
    await echo.end()
  })

  const shops: [name: string, program: string, words: string[]][] = [
    ['in plain HTML, with a server in Node', process.execPath, ['examples/shop.js']],
    ['in React, with a server in Node', process.execPath, ['examples/shop.js', 'react']],
    ['in plain HTML, with a server in Python', 'python3', ['examples/shop.py']],
  ]
  for (const [name, program, words] of shops) {
    test(name, async () => {
      const shop = await start(program, words, {
        KEY: vault.managementKey,
        // A page and a vault are of different sites, as in production.
        VAULT_URL: vault.url,
        PAYMENT_URL: `https://${echo.address.host}`,
        PORT: '0',
      })
      const page = await openPage(browser, shop.address.origin)
      const frame = page.frameLocator('symbolon-card iframe')
      await frame.getByLabel('Card number').fill(NUMBER)
      await frame.getByLabel('Expiry date').fill('12/39')
      await frame.getByLabel('Security code').fill('123')
      const before = echo.lines.length
      await page.getByRole('button', { name: /^Pay/ }).click()
      await page.getByText('Paid. Thank you.').waitFor()
      const charged = echo.lines.slice(before).find((it) => it.startsWith('{'))
      assert.deepEqual(JSON.parse(charged!), {
        amount: 3000,
        currency: 'EUR',
        number: NUMBER,
        expiry: '12/2039',
        code: '123',
      })
      assert.deepEqual(page.complaints, [])
      await page.close()
      await shop.end()
    })
  }
})

interface ExampleProgram {
  readonly lines: readonly string[]
  readonly address: URL
  readonly end: () => Promise<void>
}

/** Starts a program and waits until it prints its address. */
async function start(
  program: string,
  words: readonly string[],
  variables: Readonly<Record<string, string>> = {},
): Promise<ExampleProgram> {
  const file = program === 'python3' ? pathOfProgram('python3') : program
  const child: ChildProcess = spawn(file, words, {
    cwd: PROJECT,
    env: { ...process.env, ...variables },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines: string[] = []
  const { promise: address, resolve, reject } = Promise.withResolvers<URL>()
  child.on('exit', () => reject(new Error(`${program} ${words.join(' ')} ended: ${lines.join()}`)))
  createInterface(child.stdout!).on('line', (line) => {
    lines.push(line)
    const url = /https?:\/\/localhost:\d+/.exec(line)
    if (url !== null) resolve(new URL(url[0]))
  })
  return {
    lines,
    address: await address,
    end: async () => {
      const ended = once(child, 'exit')
      child.kill()
      await ended
    },
  }
}
