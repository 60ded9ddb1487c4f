/** Pages of the shop with card fields, in Chromium. */
import type { Browser, Page } from 'playwright-core'
import type { FieldsToken } from '../src/protocol/messages.ts'
import type { Shop } from './shop.ts'

export type ShopPage = Page & {
  /** Errors that the page reported: on the console, and exceptions. */
  readonly complaints: string[]
}

export const ELEMENTS =
  'symbolon-card, symbolon-group, symbolon-field, symbolon-text, symbolon-reveal'

/** Returns the script tag of the fields, and `markup`, in which KEY becomes the attribute with the shop's public key. */
export function markupOf(shop: Shop, markup: string, publicKey = shop.publicKey): string {
  return `<!doctype html>
<html lang="en">
<title>Shop</title>
<link rel="icon" href="data:,">
<script type="module" src="${shop.vaultOrigin}/fields/v1/fields.js"></script>
${markup.replaceAll('KEY', `public-key="${publicKey}"`)}
</html>`
}

/** Opens a page, and waits until all its elements are ready. */
export async function openShopPage(
  browser: Browser,
  shop: Shop,
  markup: string,
): Promise<ShopPage> {
  const page = await openPage(browser, shop.serve(markupOf(shop, markup)))
  await page.evaluate(async (selector) => {
    const elements = [
      ...document.querySelectorAll<HTMLElement & { ready: Promise<void> }>(selector),
    ]
    await Promise.all(elements.map((it) => customElements.whenDefined(it.localName)))
    await Promise.all(elements.map((it) => it.ready))
  }, ELEMENTS)
  return page
}

/** Opens a page and waits for nothing but its load event. */
export async function openPage(browser: Browser, url: string): Promise<ShopPage> {
  const page = await browser.newPage()
  const complaints: string[] = []
  page.on('console', (it) => {
    if (it.type() === 'error') complaints.push(it.text())
  })
  page.on('pageerror', (it) => complaints.push(String(it)))
  await page.addInitScript(prolongLimits)
  await page.goto(url)
  return Object.assign(page, { complaints })
}

/** Keeps a busy machine from deciding what a test sees: the fields wait twenty times as long before they give up. */
function prolongLimits(): void {
  const start = setTimeout
  const prolonged = (call: () => void, ms = 0) => start(call, ms >= 5000 ? ms * 20 : ms)
  Object.assign(window, { setTimeout: prolonged })
}

/** What a method of an element returned, or the members of its error. */
export interface CallOutcome {
  readonly token?: FieldsToken
  readonly error?: {
    readonly name: string
    readonly code?: string
    readonly status?: number
    readonly detail?: string
    readonly errors?: Readonly<Record<string, readonly string[]>>
    readonly retryAfter?: number
  }
}

/** Calls a method of the first element that `selector` finds. */
export async function call(
  page: Page,
  selector: string,
  method: 'tokenize' | 'update' | 'clear' | 'focus',
  ...values: unknown[]
): Promise<CallOutcome> {
  return await page.evaluate(
    async ([selector, method, values]) => {
      const element = document.querySelector(selector) as unknown as Record<
        string,
        (...values: unknown[]) => Promise<object>
      >
      try {
        return { token: await element[method]!(...values) } as CallOutcome
      } catch (error) {
        const { name, code, status, detail, errors, retryAfter } = error as Error &
          CallOutcome['error']
        return { error: { name, code, status, detail, errors, retryAfter } } as CallOutcome
      }
    },
    [selector, method, values] as const,
  )
}
