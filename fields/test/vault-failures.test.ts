/** A vault that cannot be reached, or does not answer: the page learns why, and a later call makes one token. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Browser, Route } from 'playwright-core'
import { lacksPrograms } from '../../server/test/kit/programs.ts'
import { call, openShopPage, type CallOutcome, type ShopPage } from './card-page.ts'
import { openChromium } from './chromium.ts'
import { NUMBER, openShop, type Shop } from './shop.ts'

describe('a vault that fails', { skip: lacksPrograms('chromium') }, () => {
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

  test('offline', async () => {
    const page = await openTypedCard()
    await page.context().setOffline(true)
    const { error } = await tokenize(page, 'offline')
    assert.deepEqual([error?.status, error?.code], [0, 'offline'])
    await page.context().setOffline(false)
    await makesOneToken(page, 'offline')
  })

  test('the answer is lost', async () => {
    const page = await openTypedCard()
    await intercept(page, async (route) => {
      await route.fetch()
      await route.abort('connectionreset')
    })
    const { error } = await tokenize(page, 'lost')
    assert.deepEqual([error?.status, error?.code], [0, 'unreachable'])
    assert.equal(await shop.count('order', 'lost'), 1)
    await makesOneToken(page, 'lost')
  })

  test('no answer within 30 seconds', async () => {
    const page = await openTypedCard()
    const [frame] = page.frames().slice(1)
    // The test decides when the time is over.
    await frame!.evaluate(() => {
      AbortSignal.timeout = (milliseconds) => {
        const controller = new AbortController()
        globalThis.endTime = () => {
          controller.abort(new DOMException('', 'TimeoutError'))
          return milliseconds
        }
        return controller.signal
      }
    })
    const arrived = Promise.withResolvers<void>()
    await intercept(page, async (route) => {
      await route.fetch()
      arrived.resolve()
    })
    const late = tokenize(page, 'late')
    await arrived.promise
    assert.equal(await frame!.evaluate(() => globalThis.endTime()), 30_000)
    const { error } = await late
    assert.deepEqual([error?.status, error?.code], [0, 'timeout'])
    await makesOneToken(page, 'late')
  })

  for (const { name, status, body, code } of [
    { name: 'too many attempts', status: 429, body: '{"code":"a_maximum"}', code: 'a_maximum' },
    { name: 'too many attempts, says a proxy', status: 429, body: '<h1>', code: 'rate_limited' },
    { name: 'no vault, says a proxy', status: 503, body: '<h1>', code: 'unreachable' },
  ]) {
    test(name, async () => {
      const page = await openTypedCard()
      await intercept(page, async (route) => {
        await route.fulfill({ status, headers: { 'Retry-After': '7' }, body })
      })
      const { error } = await tokenize(page, name)
      assert.deepEqual([error?.status, error?.code, error?.retryAfter], [status, code, 7])
      await makesOneToken(page, name)
    })
  }

  test('an answer that is not the vault’s', async () => {
    const page = await openTypedCard()
    await intercept(page, async (route) => {
      await route.fetch()
      await route.fulfill({ status: 200, body: '<h1>Log in to this network</h1>' })
    })
    const { error } = await tokenize(page, 'portal')
    assert.deepEqual([error?.status, error?.code], [0, 'unreachable'])
    await makesOneToken(page, 'portal')
  })

  async function openTypedCard(): Promise<ShopPage> {
    const page = await openShopPage(browser, shop, '<symbolon-card KEY></symbolon-card>')
    const frame = page.frameLocator('iframe')
    await frame.getByLabel('Card number').fill(NUMBER)
    await frame.getByLabel('Expiry date').fill('1239')
    await frame.getByLabel('Security code').fill('123')
    return page
  }

  /** Calls again, twice, now that the vault can be reached. */
  async function makesOneToken(page: ShopPage, order: string): Promise<void> {
    await page.unrouteAll()
    const again = await tokenize(page, order)
    const more = await tokenize(page, order)
    assert.equal(again.token?.type, 'card', JSON.stringify(again))
    assert.deepEqual(more, again)
    assert.equal(await shop.count('order', order), 1)
    await page.close()
  }
})

declare global {
  var endTime: () => number
}

/** Handles the requests that create tokens. */
async function intercept(page: ShopPage, handle: (route: Route) => Promise<void>): Promise<void> {
  await page.route('**/tokens', handle)
}

async function tokenize(page: ShopPage, order: string): Promise<CallOutcome> {
  return await call(page, 'symbolon-card', 'tokenize', { metadata: { order } })
}
