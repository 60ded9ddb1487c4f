/** Debian's Chromium, without a window, over the DevTools protocol. */
import { chromium, type Browser } from 'playwright-core'
import { atRealDate } from '../../server/test/kit/environment.ts'
import { pathOfProgram } from '../../server/test/kit/programs.ts'
import { STEP_MS_MAX, type Engine } from './engine.ts'

export async function openChromium(): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath: pathOfProgram('chromium'),
    env: atRealDate(process.env),
    // As root it runs without its own sandbox only. No other flag: pages should behave as they do for buyers.
    args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
    timeout: STEP_MS_MAX,
  })
  browser.on('context', (context) => context.setDefaultTimeout(STEP_MS_MAX))
  return browser
}

/** Opens it with one page, which is driven like those of other engines. */
export async function openChromiumEngine(): Promise<Engine> {
  const browser = await openChromium()
  const page = await browser.newPage()
  return {
    open: async (url) => void (await page.goto(url)),
    evaluate: async (toCall, value) =>
      await page.evaluate(toCall as (value: unknown) => unknown, value),
    evaluateInFrame: async (index, toCall, value) => {
      const iframe = (await page.$$('iframe'))[index]!
      const frame = await iframe.contentFrame()
      return await frame!.evaluate(toCall as (value: unknown) => unknown, value)
    },
    click: async ({ x, y }) => await page.mouse.click(x, y),
    type: async (text) => await page.keyboard.type(text),
    press: async (key, ...held) => await page.keyboard.press([...held, key].join('+')),
    screenshot: async () => await page.screenshot(),
    close: async () => await browser.close(),
  }
}
