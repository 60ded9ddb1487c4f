/** Debian's Chromium, without a window. */
import { chromium, type Browser } from 'playwright-core'
import { pathOfProgram } from '../../server/test/kit/programs.ts'

export async function openChromium(): Promise<Browser> {
  return await chromium.launch({
    executablePath: pathOfProgram('chromium'),
    // As root it runs without its own sandbox only. No other flag: pages should behave as they do for buyers.
    args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
  })
}
