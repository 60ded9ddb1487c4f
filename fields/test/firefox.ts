/** Debian's Firefox ESR, without a window, over WebDriver BiDi. */
import { launch, type KeyInput } from 'puppeteer-core'
import { atRealDate } from '../../server/test/kit/environment.ts'
import { pathOfProgram } from '../../server/test/kit/programs.ts'
import { STEP_MS_MAX, type Engine } from './engine.ts'

/** The profile is a temporary one, which is removed at the end. */
export async function openFirefox(): Promise<Engine> {
  const browser = await launch({
    browser: 'firefox',
    executablePath: pathOfProgram('firefox-esr'),
    env: atRealDate(process.env),
    timeout: STEP_MS_MAX,
    protocolTimeout: STEP_MS_MAX,
  })
  const page = await browser.newPage()
  page.setDefaultTimeout(STEP_MS_MAX)
  return {
    open: async (url) => void (await page.goto(url)),
    evaluate: async (toCall, value) =>
      await page.evaluate(toCall as (value: unknown) => unknown, value),
    evaluateInFrame: async (index, toCall, value) => {
      // By its URL, in whose fragment is a nonce. Asking for the frame of an element takes 200 ms.
      const url = await page.evaluate((it) => document.querySelectorAll('iframe')[it]!.src, index)
      const frame = page.frames().find((it) => it.url() === url)
      if (frame === undefined) throw new Error(`No frame has the URL of iframe ${index}`)
      return await frame.evaluate(toCall as (value: unknown) => unknown, value)
    },
    click: async ({ x, y }) => await page.mouse.click(x, y),
    type: async (text) => await page.keyboard.type(text),
    press: async (key, ...held) => {
      for (const it of held) await page.keyboard.down(it)
      await page.keyboard.press(key as KeyInput)
      for (const it of held) await page.keyboard.up(it)
    },
    screenshot: async () => await page.screenshot(),
    close: async () => await browser.close(),
  }
}
