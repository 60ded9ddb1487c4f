/** Debian's Chromium, without a window. */
import { chromium, type Browser, type Page } from 'playwright-core'

export async function openChromium(): Promise<Browser> {
  // As root it runs without its own sandbox only. No other flag: pages should behave as they do for buyers.
  return await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] })
}

/** Opens a page and collects what it reports as errors: console messages and exceptions. */
export async function openPage(
  browser: Browser,
  url: string,
): Promise<Page & { readonly complaints: string[] }> {
  const page = await browser.newPage()
  const complaints: string[] = []
  page.on('console', (it) => {
    if (it.type() === 'error') complaints.push(it.text())
  })
  page.on('pageerror', (it) => complaints.push(String(it)))
  await page.goto(url)
  return Object.assign(page, { complaints })
}
