/** A buyer pays by card in Chromium, Firefox and WebKit: with one iframe for the card, and with one for each field. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { lacksPrograms } from '../../server/test/kit/programs.ts'
import type { FieldsState, FieldsToken } from '../src/protocol/messages.ts'
import { ELEMENTS, markupOf } from './card-page.ts'
import { openChromiumEngine } from './chromium.ts'
import { driverOf, type Driver, type Engine } from './engine.ts'
import { openFirefox } from './firefox.ts'
import { NUMBER, openShop, type Shop } from './shop.ts'
import { openWebKit } from './webkit.ts'

interface EngineUnderTest {
  readonly name: string
  readonly open: () => Promise<Engine>
  readonly skip: string | false
}

const ENGINES: readonly EngineUnderTest[] = [
  { name: 'Chromium', open: openChromiumEngine, skip: lacksPrograms('chromium') },
  { name: 'Firefox', open: openFirefox, skip: lacksPrograms('firefox-esr') },
  { name: 'WebKit', open: openWebKit, skip: lacksPrograms('WebKitWebDriver', 'Xvfb') },
]

const LAYOUTS = {
  'symbolon-card': '<symbolon-card id="card" KEY></symbolon-card>',
  'symbolon-group': `<symbolon-group id="card" KEY>
      <symbolon-field name="number"></symbolon-field>
      <symbolon-field name="expiry"></symbolon-field>
      <symbolon-field name="cvc"></symbolon-field>
    </symbolon-group>`,
}

const LABELS = { number: 'Card number', expiry: 'Expiry date', cvc: 'Security code' } as const
type Name = keyof typeof LABELS

/** Of a month that is past in no run of the tests. */
const CARD = { number: NUMBER, expiration_month: 12, expiration_year: 2039, cvc: '123' }

let shop: Shop
let bank: Bank
before(async () => {
  bank = await openBank()
  shop = await openShop({ SYMBOLON_EGRESS_ALLOW: new URL(bank.url).host })
})
after(async () => {
  await shop.close()
  await bank.close()
})

for (const { name, open, skip } of ENGINES) {
  describe(name, { skip }, () => {
    let driver: Driver
    before(async () => void (driver = driverOf(await open())))
    after(async () => await driver.close())
    for (const [layout, markup] of Object.entries(LAYOUTS)) {
      describe(layout, () => payingTests(markup, () => driver))
    }
  })
}

describe('WebKit, when the buyer comes back', { skip: ENGINES[2]!.skip }, () => {
  test('has a page without the card', async () => {
    const engine = await openWebKit()
    const page = await openCheckout(driverOf(engine), LAYOUTS['symbolon-card'])
    await page.clickField(LABELS.number)
    await page.type(NUMBER)
    await untilValue(page, 'number', '4242 4242 4242 4242')
    await page.open(shop.serve('<!doctype html><title>Elsewhere</title>'))
    await engine.back()
    await untilValue(page, 'number', '')
    await engine.close()
  })
})

function payingTests(markup: string, driver: () => Driver): void {
  test('a card is typed key by key, and Enter submits the form', async () => {
    const page = await openCheckout(driver(), markup)
    await page.clickField(LABELS.number)
    await page.type('4')
    await untilState(page, 'number', { brand: 'visa', empty: false })
    await page.type(NUMBER.slice(1, -1))
    await untilValue(page, 'number', '4242 4242 4242 424')
    await page.type(NUMBER.slice(-1))
    await untilState(page, 'number', { brand: 'visa', lastFour: '4242', bin: '42424242' })
    await page.clickField(LABELS.expiry)
    await page.type('1239')
    await page.clickField(LABELS.cvc)
    await page.type('123')
    await page.press('Enter')
    const [token] = await payments(page, 1)
    assert.deepEqual(await shop.stored(token!.id), CARD)
    for (const { fields, bin, lastFour } of await states(page, 'number')) {
      const shown = fields.number!.complete ? ['42424242', '4242'] : [null, null]
      assert.deepEqual([bin, lastFour], shown)
    }

    const number = `{{ ${token!.id} | json: '$.number' }}`
    assert.equal(await shop.charge(bank.url, { number }), 200)
    assert.deepEqual(bank.received.splice(0), [JSON.stringify({ number: NUMBER })])
  })

  test('an iframe has its height when its element is ready', async () => {
    const page = await openCheckout(driver(), markup)
    const { heights } = await page.evaluate(() => globalThis.checkout)
    const now = await page.evaluate(() =>
      [...document.querySelectorAll('iframe:not([aria-hidden])')].map(
        (it) => (it as HTMLIFrameElement).offsetHeight,
      ),
    )
    assert.ok(now.every((it) => it > 40))
    assert.deepEqual(heights, now)
  })

  test('a card is pasted as people write it', async () => {
    const page = await openCheckout(driver(), markup)
    await page.paste(LABELS.number, ' 4242-4242 4242–4242 ')
    await untilValue(page, 'number', '4242 4242 4242 4242')
    await page.paste(LABELS.expiry, '12/2039')
    await untilValue(page, 'expiry', '12 / 2039')
    await page.paste(LABELS.cvc, ' 123 ')
    await untilValue(page, 'cvc', '123')
    await page.clickElement('#pay')
    const [token] = await payments(page, 1)
    assert.deepEqual(await shop.stored(token!.id), CARD)
  })

  test('the keyboard goes through the fields in order, and back', async () => {
    const page = await openCheckout(driver(), markup)
    await page.clickElement('#email')
    for (const [name, text] of [
      ['number', NUMBER],
      ['expiry', '1239'],
      ['cvc', '123'],
    ] as const) {
      await page.press('Tab')
      await untilFocused(page, name)
      await page.type(text)
    }
    await page.press('Tab')
    await page.until(() => document.activeElement!.id === 'pay' && document.hasFocus())
    for (const name of ['cvc', 'expiry', 'number'] as const) {
      await page.press('Tab', 'Shift')
      await untilFocused(page, name)
    }
    await page.press('Tab', 'Shift')
    await page.until(() => document.activeElement!.id === 'email' && document.hasFocus())
    await page.press('Enter')
    const [token] = await payments(page, 1)
    assert.deepEqual(await shop.stored(token!.id), CARD)
    const { focus } = await page.evaluate(() => globalThis.checkout)
    const thereAndBack = ['focus', 'blur', 'focus', 'blur']
    assert.deepEqual(focus, { number: thereAndBack, expiry: thereAndBack, cvc: thereAndBack })
  })

  test('a correction in the middle leaves the caret where it is', async () => {
    const page = await openCheckout(driver(), markup)
    await page.clickField(LABELS.number)
    await page.type('424242424242')
    for (let n = 0; n < 7; n++) await page.press('ArrowLeft')
    await page.type('1')
    await untilCaret(page, '4242 4214 2424 2', 8)
    await page.press('Backspace')
    await untilCaret(page, '4242 4242 4242', 7)
    await page.press('Delete')
    await untilCaret(page, '4242 4224 242', 7)
    // A space is passed, not deleted.
    for (let n = 0; n < 3; n++) await page.press('ArrowLeft')
    await page.press('Delete')
    await untilCaret(page, '4242 4224 242', 5)
    await page.press('Delete')
    await untilCaret(page, '4242 2242 42', 5)
    await page.press('Backspace')
    await untilCaret(page, '4242 2242 42', 4)
    await page.press('Backspace')
    await untilCaret(page, '4242 2424 2', 3)
  })

  test('a flaw is shown when the field is left, not while it is typed', async () => {
    const page = await openCheckout(driver(), markup)
    await page.clickField(LABELS.number)
    for (const digit of '4242424242424241') {
      await page.type(digit)
      assert.equal((await page.field(LABELS.number)).flaw, '')
    }
    await untilValue(page, 'number', '4242 4242 4242 4241')
    await page.press('Tab')
    await untilFocused(page, 'expiry')
    await untilState(page, 'number', { error: 'invalid' })
    const { flaw } = await page.field(LABELS.number)
    assert.equal(flaw, 'Check the card number: it is not valid.')
    await page.press('Tab', 'Shift')
    await untilFocused(page, 'number')
    await page.press('Backspace')
    await untilState(page, 'number', { error: undefined })
    assert.equal((await page.field(LABELS.number)).flaw, '')
  })

  test('focus() goes to the named or the first incomplete field, clear() empties all', async () => {
    const page = await openCheckout(driver(), markup)
    await page.clickField(LABELS.number)
    await page.type(NUMBER)
    await untilValue(page, 'number', '4242 4242 4242 4242')
    await page.evaluate(() => document.querySelector<HTMLElement & Focusing>('#card')!.focus())
    await untilTypable(page, 'expiry')
    await page.type('1239')
    await untilValue(page, 'expiry', '12 / 39')
    await page.evaluate(() => document.querySelector<HTMLElement & Focusing>('#card')!.focus('cvc'))
    await untilTypable(page, 'cvc')
    await page.type('123')
    await untilValue(page, 'cvc', '123')
    await page.evaluate(() => document.querySelector<HTMLElement & Focusing>('#card')!.clear())
    await untilState(page, 'number', { empty: true, brand: null, lastFour: null, bin: null })
    await untilState(page, 'cvc', { empty: true })
    await untilValue(page, 'number', '')
    await untilValue(page, 'cvc', '')
  })

  test('paying with a flaw moves the focus to the first field that has one', async () => {
    const page = await openCheckout(driver(), markup)
    await page.clickField(LABELS.number)
    await page.type(NUMBER)
    await untilValue(page, 'number', '4242 4242 4242 4242')
    await page.clickElement('#pay')
    await page.until(() => globalThis.checkout.codes.includes('incomplete'))
    assert.equal((await page.field(LABELS.cvc)).flaw, 'Enter the security code.')
    await untilTypable(page, 'expiry')
    await page.type('1239')
    await untilValue(page, 'expiry', '12 / 39')
  })

  test('a double click on the button makes one token', async () => {
    const page = await openCheckout(driver(), markup)
    await page.clickField(LABELS.number)
    await page.type(NUMBER)
    await page.press('Tab')
    await untilFocused(page, 'expiry')
    await page.type('1239')
    await page.press('Tab')
    await untilFocused(page, 'cvc')
    await page.type('123')
    await untilValue(page, 'cvc', '123')
    // Twice, before the first call has an answer.
    await page.evaluate(() => {
      const button = document.querySelector<HTMLButtonElement>('#pay')!
      button.click()
      button.click()
    })
    const [first, second] = await payments(page, 2)
    assert.equal(first!.id, second!.id)
    const order = await page.evaluate(() => globalThis.checkout.order)
    assert.equal(await shop.count('order', order), 1)
  })
}

interface Focusing {
  focus(field?: string): void
  clear(): void
}

/** What the shop's script keeps for the test. */
interface Checkout {
  readonly order: string
  readonly states: Partial<Record<Name, FieldsState[]>>
  readonly tokens: FieldsToken[]
  readonly codes: (string | undefined)[]
  /** What each field has told of the focus. */
  readonly focus: Partial<Record<Name, string[]>>
  /** Of each iframe with fields, when its element was ready. */
  readonly heights: number[]
}

declare global {
  var checkout: Checkout
}

/** Opens a form with an input, the card, and a button; each submission pays. */
async function openCheckout(driver: Driver, markup: string): Promise<Driver> {
  const form = `<form>
      <label>Email <input id="email"></label>
      ${markup}
      <button id="pay">Pay</button>
    </form>
    <textarea></textarea>
    <script type="module">(${String(startCheckout)})()</script>`
  await driver.open(shop.serve(markupOf(shop, form)))
  await driver.evaluate(async (selector: string) => {
    const elements = [
      ...document.querySelectorAll<HTMLElement & { ready: Promise<void> }>(selector),
    ]
    await Promise.all(elements.map((it) => customElements.whenDefined(it.localName)))
    await Promise.all(elements.map((it) => it.ready))
  }, ELEMENTS)
  return driver
}

/** The shop's script. */
function startCheckout(): void {
  const order = crypto.randomUUID()
  const checkout: Checkout = { order, states: {}, tokens: [], codes: [], heights: [], focus: {} }
  globalThis.checkout = checkout
  for (const element of document.querySelectorAll('symbolon-card, symbolon-field')) {
    element.addEventListener('ready', () => {
      checkout.heights.push(element.querySelector('iframe')!.offsetHeight)
    })
    for (const type of ['focus', 'blur']) {
      element.addEventListener(type, (event) => {
        const { field } = (event as CustomEvent<{ field: Name }>).detail
        ;(checkout.focus[field] ??= []).push(type)
      })
    }
    element.addEventListener('change', (event) => {
      const state = (event as CustomEvent<FieldsState>).detail
      for (const name of Object.keys(state.fields) as Name[]) {
        ;(checkout.states[name] ??= []).push(state)
      }
    })
  }
  document.querySelector('form')!.addEventListener('submit', (event) => {
    event.preventDefault()
    const card = document.querySelector<HTMLElement & Tokenizing>('#card')!
    card.tokenize({ metadata: { order } }).then(
      (token) => checkout.tokens.push(token),
      (error: { code?: string }) => checkout.codes.push(error.code),
    )
  })
}

interface Tokenizing {
  tokenize(options: object): Promise<FieldsToken>
}

/** Returns the tokens of the payments, of which there must be `count`. */
async function payments(page: Driver, count: number): Promise<FieldsToken[]> {
  await page.until((count: number) => {
    const { tokens, codes } = globalThis.checkout
    return tokens.length + codes.length === count
  }, count)
  const { tokens, codes } = await page.evaluate(() => globalThis.checkout)
  assert.deepEqual(codes, [])
  return tokens
}

/** Returns all states with this field that the page got. */
async function states(page: Driver, name: Name): Promise<FieldsState[]> {
  return await page.evaluate((name: Name) => globalThis.checkout.states[name] ?? [], name)
}

/** Waits until the page got a state of this field that has these members; `error` is the code of its flaw. */
async function untilState(page: Driver, name: Name, expected: object): Promise<void> {
  await page.until(
    ({ name, expected }: { name: Name; expected: object }) => {
      const state = globalThis.checkout.states[name]?.at(-1)
      const { empty, error } = state?.fields[name] ?? {}
      const known = { ...state, empty, error: error?.code } as Record<string, unknown>
      return Object.entries(expected).every(([member, value]) => known[member] === value)
    },
    { name, expected },
  )
}

async function untilFocused(page: Driver, name: Name): Promise<void> {
  await page.untilField(LABELS[name], ({ focused }) => focused)
}

/** Like untilFocused(), but in WebKit the focus moves into an iframe that the buyer has not used only with the first key. */
async function untilTypable(page: Driver, name: Name): Promise<void> {
  await page.untilField(LABELS[name], ({ focused, frameFocused }) => focused || frameFocused)
}

async function untilValue(page: Driver, name: Name, expected: string): Promise<void> {
  await page.untilField(LABELS[name], ({ value }) => value === expected)
}

async function untilCaret(page: Driver, value: string, caret: number): Promise<void> {
  await page.untilField(LABELS.number, (it) => it.value === value && it.caret === caret)
}

interface Bank {
  readonly url: string
  /** The bodies of its requests, as they arrived. */
  readonly received: string[]
  readonly close: () => Promise<void>
}

/** A payment provider, where the shop's server charges cards. */
async function openBank(): Promise<Bank> {
  const received: string[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8')
    request.on('data', (chunk: string) => (body += chunk))
    request.on('end', () => {
      received.push(body)
      response.end('charged')
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/charges`,
    received,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
