/** Card fields in Chromium, on a page of another origin than the vault's. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Browser, FrameLocator } from 'playwright-core'
import { lacksPrograms } from '../../server/test/kit/programs.ts'
import { call, openShopPage } from './card-page.ts'
import { openChromium } from './chromium.ts'
import { NUMBER, openShop, type Shop } from './shop.ts'

describe('on a page of another origin', { skip: lacksPrograms('chromium') }, () => {
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

  test('a card is typed in one iframe, and becomes a token', async () => {
    const page = await openShopPage(browser, shop, '<symbolon-card KEY></symbolon-card>')
    await typeCard(page.frameLocator('iframe'))
    const outcome = await call(page, 'symbolon-card', 'tokenize', { metadata: { order: '17' } })
    assert.equal(outcome.token?.type, 'card', JSON.stringify(outcome))
    assert.deepEqual(outcome.token.metadata, { order: '17' })
    assert.deepEqual(await shop.stored(outcome.token.id), {
      number: NUMBER,
      expiration_month: 12,
      expiration_year: 2039,
      cvc: '123',
    })
    assert.deepEqual(page.complaints, [])
    await page.close()
  })

  test('a card is typed in iframes of its own, and becomes a token', async () => {
    const page = await openShopPage(
      browser,
      shop,
      `<symbolon-group KEY>
        <symbolon-field name="number"></symbolon-field>
        <symbolon-field name="expiry"></symbolon-field>
        <symbolon-field name="cvc"></symbolon-field>
      </symbolon-group>`,
    )
    const early = await call(page, 'symbolon-group', 'tokenize')
    assert.equal(early.error?.code, 'incomplete')
    const frame = (name: string): FrameLocator => page.frameLocator(`[name=${name}] iframe`)
    await frame('number').getByLabel('Card number').pressSequentially(NUMBER)
    await frame('expiry').getByLabel('Expiry date').pressSequentially('1239')
    await frame('cvc').getByLabel('Security code').pressSequentially('123')
    const outcome = await call(page, 'symbolon-group', 'tokenize')
    assert.equal(outcome.token?.type, 'card', JSON.stringify(outcome))
    assert.deepEqual(await shop.stored(outcome.token.id), {
      number: NUMBER,
      expiration_month: 12,
      expiration_year: 2039,
      cvc: '123',
    })
    assert.deepEqual(page.complaints, [])
    await page.close()
  })

  test('a text is typed, and becomes a token', async () => {
    const page = await openShopPage(
      browser,
      shop,
      '<symbolon-text KEY label="IBAN"></symbolon-text>',
    )
    await page.frameLocator('iframe').getByLabel('IBAN').fill('DE02120300000000202051')
    const outcome = await call(page, 'symbolon-text', 'tokenize')
    assert.equal(outcome.token?.type, 'token', JSON.stringify(outcome))
    assert.equal(await shop.stored(outcome.token.id), 'DE02120300000000202051')
    await page.close()
  })

  test('a stored card is shown to its owner', async () => {
    const id = await shop.store({ number: NUMBER, expiration_month: 12, expiration_year: 2039 })
    const page = await openShopPage(browser, shop, '<symbolon-reveal KEY></symbolon-reveal>')
    await page.exposeFunction('authorize', async (nonce: string) => await shop.authorize(nonce, id))
    await page.evaluate(async (id) => {
      const { authorize } = globalThis as unknown as { authorize: (nonce: string) => Promise<void> }
      await document.querySelector('symbolon-reveal')!.reveal(id, authorize)
    }, id)
    await page.frameLocator('iframe').getByText('4242 4242 4242 4242').waitFor()
    await page.close()
  })
})

/** Of a month that is past in no run of the tests. */
async function typeCard(frame: FrameLocator): Promise<void> {
  await frame.getByLabel('Card number').pressSequentially(NUMBER)
  await frame.getByLabel('Expiry date').pressSequentially('1239')
  await frame.getByLabel('Security code').pressSequentially('123')
}
