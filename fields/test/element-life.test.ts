/** Elements that are removed, loaded again, cleared or styled while something is under way. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { lacksPrograms } from '../../server/test/kit/programs.ts'
import { call, openPage, openShopPage, type ShopPage } from './card-page.ts'
import { openChromium } from './chromium.ts'
import { NUMBER, openShop, type Shop } from './shop.ts'

const CARD = '<symbolon-card KEY></symbolon-card>'

describe('an element', { skip: lacksPrograms('chromium') }, () => {
  let shop: Shop
  let browser: Browser
  before(async () => {
    shop = await openShop()
    browser = await openChromium()
  })
  after(async () => {
    await browser.close()
    await shop.close()
  })

  test('that is removed settles what was called, and works again when it is put back', async () => {
    const page = await openShopPage(browser, shop, CARD)
    const codes = await page.evaluate(async () => {
      const card = document.querySelector('symbolon-card')!
      const codeOf = async (it: Promise<unknown>): Promise<unknown> =>
        await it.then(
          () => 'done',
          (error: { code: string }) => error.code,
        )
      card.remove()
      const outside = codeOf(card.tokenize())
      document.body.append(card)
      const mounting = [codeOf(card.ready), codeOf(card.tokenize())]
      card.remove()
      const removed = await Promise.all([outside, ...mounting])
      document.body.append(card)
      return [...removed, await codeOf(card.ready)]
    })
    assert.deepEqual(codes, ['removed', 'removed', 'removed', 'done'])
    assert.equal(await page.locator('iframe').count(), 1)
    await page.close()
  })

  test('whose iframe is loaded again settles what was called, and starts again', async () => {
    const page = await openShopPage(browser, shop, CARD)
    await typeCard(page)
    await page.evaluate(() => {
      const card = document.querySelector('symbolon-card')!
      return new Promise<void>((resolve) => {
        card.addEventListener('ready', () => resolve())
        card.querySelector('iframe')!.src += ''
      })
    })
    assert.equal((await call(page, 'symbolon-card', 'tokenize')).error?.code, 'incomplete')
    await typeCard(page)
    assert.equal((await call(page, 'symbolon-card', 'tokenize')).token?.type, 'card')
    await page.close()
  })

  test('is ready although the hello of its iframe comes seconds after the load event', async () => {
    const holding = `<script>
      addEventListener('message', (event) => {
        const { data, origin, source } = event
        if (data.symbolon !== 'hello' || !event.isTrusted) return
        event.stopImmediatePropagation()
        setTimeout(() => dispatchEvent(new MessageEvent('message', { data, origin, source })), 3000)
      })
    </script>`
    const page = await openShopPage(browser, shop, holding + CARD)
    assert.equal(await page.locator('iframe').count(), 1)
    assert.deepEqual(page.complaints, [])
    await page.close()
  })

  test('takes styles that were set before the script came', async () => {
    const page = await openPage(
      browser,
      shop.serve(`<!doctype html><body>
      <symbolon-card public-key="${shop.publicKey}"></symbolon-card></body>`),
    )
    await page.evaluate(async (src) => {
      const card = document.querySelector('symbolon-card')!
      card.styles = { input: { 'font-size': '23px' } }
      await import(src)
      await card.ready
    }, `${shop.vaultOrigin}/fields/v1/fields.js`)
    const size = await page
      .frameLocator('iframe')
      .getByLabel('Card number')
      .evaluate((it) => getComputedStyle(it).fontSize)
    assert.equal(size, '23px')
    await page.close()
  })

  test('reports styles that cannot be set, and goes on with what it does', async () => {
    const page = await openShopPage(browser, shop, CARD)
    await typeCard(page)
    const [type, code] = await page.evaluate(async () => {
      const card = document.querySelector('symbolon-card')!
      const fault = new Promise<string>((resolve) => {
        card.addEventListener('error', (event) => {
          resolve((event as unknown as CustomEvent<{ code: string }>).detail.code)
        })
      })
      const token = card.tokenize()
      card.styles = { input: { top: '1px' } } as never
      return [(await token).type, await fault]
    })
    assert.deepEqual([type, code], ['card', 'configuration_invalid'])
    await page.close()
  })

  test('that was copied with its iframe has one', async () => {
    const page = await openShopPage(browser, shop, CARD)
    await page.evaluate(async () => {
      const copy = document.querySelector('symbolon-card')!.cloneNode(true) as HTMLElement & {
        ready: Promise<void>
      }
      document.querySelector('symbolon-card')!.replaceWith(copy)
      await copy.ready
    })
    assert.equal(await page.locator('iframe').count(), 1)
    await page.close()
  })

  test('that is cleared while a card comes stays empty', async () => {
    const [page, id] = await openReveal()
    await page.route('**/tokens/*', async (route) => {
      await page.evaluate(() => document.querySelector('symbolon-reveal')!.clear())
      await route.continue()
    })
    const outcome = await reveal(page, id, 1)
    assert.deepEqual(outcome, ['cleared'])
    assert.equal(await page.frameLocator('iframe').locator('dd').count(), 0)
    await page.close()
  })

  test('that is asked twice at once has each session authorized for itself', async () => {
    const [page, id] = await openReveal()
    assert.deepEqual(await reveal(page, id, 2), ['done', 'done'])
    await page.close()
  })

  async function openReveal(): Promise<[page: ShopPage, id: string]> {
    const id = await shop.store({ number: NUMBER, expiration_month: 12, expiration_year: 2039 })
    const page = await openShopPage(browser, shop, '<symbolon-reveal KEY></symbolon-reveal>')
    await page.exposeFunction('authorize', async (nonce: string) => await shop.authorize(nonce, id))
    return [page, id]
  }

  /** Calls reveal() several times at once, and returns the code of each error, or `done`. */
  async function reveal(page: ShopPage, id: string, times: number): Promise<string[]> {
    return await page.evaluate(
      async ([id, times]) => {
        const { authorize } = globalThis as unknown as { authorize: (nonce: string) => unknown }
        const element = document.querySelector('symbolon-reveal')!
        const calls = Array.from({ length: times }, async () => {
          try {
            await element.reveal(id, authorize)
            return 'done'
          } catch (error) {
            return (error as { code: string }).code
          }
        })
        return await Promise.all(calls)
      },
      [id, times] as const,
    )
  }

  async function typeCard(page: ShopPage): Promise<void> {
    const frame = page.frameLocator('iframe')
    await frame.getByLabel('Card number').fill(NUMBER)
    await frame.getByLabel('Expiry date').fill('12/39')
    await frame.getByLabel('Security code').fill('123')
  }
})
