/** Fields that are filled in without keys: by Chromium's autofill, as when a buyer chooses a stored card, and by input methods. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Browser, CDPSession, Frame } from 'playwright-core'
import { lacksPrograms } from '../../server/test/kit/programs.ts'
import type { SymbolonCard } from '../src/page/symbolon-card.ts'
import type { FieldsState } from '../src/protocol/messages.ts'
import { call, openShopPage, type ShopPage } from './card-page.ts'
import { openChromium } from './chromium.ts'
import { NUMBER, openShop, type Shop } from './shop.ts'

/** Of a month that is past in no run of the tests. */
const CARD = {
  number: NUMBER,
  name: 'Ada Lovelace',
  expiryMonth: '12',
  expiryYear: '2039',
  cvc: '123',
}

const STORED = { number: NUMBER, expiration_month: 12, expiration_year: 2039, cvc: '123' }

const FORMATTED = { number: '4242 4242 4242 4242', expiry: '12 / 39', cvc: '123' }

const LAYOUTS = [
  { layout: 'symbolon-card', markup: '<symbolon-card KEY></symbolon-card>' },
  {
    layout: 'symbolon-group',
    markup: `<symbolon-group KEY>
      <symbolon-field name="number"></symbolon-field>
      <symbolon-field name="expiry"></symbolon-field>
      <symbolon-field name="cvc"></symbolon-field>
    </symbolon-group>`,
  },
]

describe('without keys', { skip: lacksPrograms('chromium') }, () => {
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

  for (const { layout, markup } of LAYOUTS) {
    test(`a chosen card fills all fields of a ${layout}, and the page gets an event for each`, async () => {
      const page = await openShopPage(browser, shop, markup)
      await recordEvents(page)
      await autofill(page, await frameWith(page, 'number'))
      await page.waitForFunction(() => Object.keys(globalThis.told.autofilled).length === 3)
      for (const [name, value] of Object.entries(FORMATTED)) {
        assert.equal(await valueOf(page, name), value)
      }
      const { number, expiry, cvc } = await page.evaluate(() => globalThis.told.autofilled)
      const { brand, lastFour, bin } = number!
      assert.deepEqual([brand, lastFour, bin], ['visa', '4242', '42424242'])
      for (const [name, state] of Object.entries({ number, expiry, cvc })) {
        assert.deepEqual(state!.fields[name as 'cvc'], {
          empty: false,
          complete: true,
          error: null,
        })
      }
      const { token, error } = await call(page, layout, 'tokenize')
      assert.deepEqual(await shop.stored(token!.id), STORED, JSON.stringify(error))
      assert.deepEqual(page.complaints, [])
      await page.close()
    })
  }

  test('digits that an input method composes are formatted once they are chosen', async () => {
    const page = await openShopPage(browser, shop, '<symbolon-card KEY></symbolon-card>')
    await page.frameLocator('iframe').getByLabel('Card number').click()
    const session = await page.context().newCDPSession(await frameWith(page, 'number'))
    let composed = ''
    for (const digit of '４２４２４２') {
      composed += digit
      const caret = { selectionStart: composed.length, selectionEnd: composed.length }
      await session.send('Input.imeSetComposition', { text: composed, ...caret })
      assert.equal(await valueOf(page, 'number'), composed)
    }
    await session.send('Input.insertText', { text: composed })
    assert.equal(await valueOf(page, 'number'), '4242 42')
    await page.keyboard.type('4')
    assert.equal(await valueOf(page, 'number'), '4242 424')
    await page.close()
  })

  test('Enter that ends a composition does not submit the form', async () => {
    const form = '<form><symbolon-card fields="name" KEY></symbolon-card></form>'
    const page = await openShopPage(browser, shop, form)
    await page.evaluate(() => {
      globalThis.submitted = 0
      globalThis.left = false
      document.querySelector('form')!.addEventListener('submit', (event) => {
        event.preventDefault()
        globalThis.submitted += 1
      })
      document.querySelector('symbolon-card')!.addEventListener('blur', () => {
        globalThis.left = true
      })
    })
    const name = page.frameLocator('iframe').getByLabel('Name on card')
    await name.fill('山田')
    // As Chromium and Firefox tell it, and as Safari does, where the composition has ended before.
    for (const detail of [{ isComposing: true }, { keyCode: 229 }]) {
      await name.dispatchEvent('keydown', {
        key: 'Enter',
        bubbles: true,
        cancelable: true,
        ...detail,
      })
    }
    await name.press('Enter')
    // Told after all of them.
    await name.blur()
    await page.waitForFunction(() => globalThis.left)
    assert.equal(await page.evaluate(() => globalThis.submitted), 1)
    await page.close()
  })
})

declare global {
  var told: { autofilled: Record<string, FieldsState> }
  var submitted: number
  var left: boolean
}

/** Keeps the state that the page had when it learned that a field had been filled in. */
async function recordEvents(page: ShopPage): Promise<void> {
  await page.evaluate(() => {
    globalThis.told = { autofilled: {} }
    for (const element of document.querySelectorAll('symbolon-card, symbolon-field')) {
      element.addEventListener('autofill', (event) => {
        const { field } = (event as CustomEvent<{ field: string }>).detail
        globalThis.told.autofilled[field] = (element as SymbolonCard).state!
      })
    }
  })
}

/** Chooses the card in the field for the number. The iframe is in a process of its own, with a session of its own. */
async function autofill(page: ShopPage, frame: Frame): Promise<void> {
  const session = await page.context().newCDPSession(frame)
  const { frameTree } = await session.send('Page.getFrameTree')
  const fieldId = await backendIdOf(session, '#number')
  // Chromium fills in nothing until it has classified the form, and reports no event for that.
  while ((await frame.locator('#number').inputValue()) === '') {
    // Without the frame, the browser looks for the field in the page's own document.
    await session.send('Autofill.trigger', { fieldId, frameId: frameTree.frame.id, card: CARD })
    await frame.evaluate(() => new Promise(requestAnimationFrame))
  }
}

async function backendIdOf(session: CDPSession, selector: string): Promise<number> {
  const { root } = await session.send('DOM.getDocument')
  const { nodeId } = await session.send('DOM.querySelector', { nodeId: root.nodeId, selector })
  const { node } = await session.send('DOM.describeNode', { nodeId })
  return node.backendNodeId
}

async function frameWith(page: ShopPage, name: string): Promise<Frame> {
  const frames = page.frames().slice(1)
  const counts = await Promise.all(frames.map((it) => it.locator(`#${name}`).count()))
  return frames[counts.indexOf(1)]!
}

async function valueOf(page: ShopPage, name: string): Promise<string> {
  const frame = await frameWith(page, name)
  return await frame.locator(`#${name}`).inputValue()
}
