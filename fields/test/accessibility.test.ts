/** How the fields look and how they are perceived, in Chromium: by eye, in large text, by keyboard and by screen reader. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Browser, Frame, Page } from 'playwright-core'
import { lacksPrograms } from '../../server/test/kit/programs.ts'
import type { StyleRules } from '../src/protocol/style-rules.ts'
import { runAxe } from './axe.ts'
import { call, openShopPage, type ShopPage } from './card-page.ts'
import { openChromium } from './chromium.ts'
import { NUMBER, openShop, type Shop } from './shop.ts'

/** What Chromium paints behind a page, by its color scheme. */
const CANVAS = { light: '#ffffff', dark: '#121212' } as const

/** WCAG 2.2, level AA: of text, and of what marks a control or its state. */
const TEXT_CONTRAST_MIN = 4.5
const MARK_CONTRAST_MIN = 3

/** WCAG 2.2, 2.5.8, in CSS pixels. */
const TARGET_PX_MIN = 24

/** High enough for all: Chromium lays iframes out that are in sight. In CSS pixels. */
const WINDOW_HEIGHT = 8000

/** A layout that has not settled by then never will, in milliseconds. */
const SETTLE_MS_MAX = 120_000

const ALL_FIELDS = 'number expiry cvc name postal-code'

/** One element in each state, with the role that it has in a page. Titles, since no two iframes of a page may share one. */
const STATES = `
  <h1>Checkout</h1>
  <symbolon-card KEY id="empty"></symbolon-card>
  <symbolon-card KEY id="half" title="Half typed"></symbolon-card>
  <symbolon-card KEY id="complete" title="Complete" fields="${ALL_FIELDS}"></symbolon-card>
  <symbolon-card KEY id="errors" title="With errors" fields="${ALL_FIELDS}"></symbolon-card>
  <symbolon-card KEY id="co-branded" title="Co-branded" fields="number"></symbolon-card>
  <symbolon-group KEY id="group">
    <symbolon-field name="number"></symbolon-field>
    <symbolon-field name="expiry"></symbolon-field>
    <symbolon-field name="cvc"></symbolon-field>
  </symbolon-group>
  <symbolon-text KEY id="text" label="IBAN"></symbolon-text>
  <symbolon-reveal KEY id="hidden" title="Not revealed"></symbolon-reveal>
  <symbolon-reveal KEY id="revealed" title="Revealed"></symbolon-reveal>`

/** Two designs that many pages have, each as a style sheet of the page and as styles of its fields. */
const DESIGNS: Readonly<Record<string, { css: string; styles: StyleRules }>> = {
  outlined: {
    css: `
      body { margin: 0; padding: 16px; font: 16px/1.5 sans-serif; color: #212529 }
      label { display: block; margin-bottom: 8px; font-size: 14px }
      input { box-sizing: border-box; display: block; width: 100%; padding: 6px 12px;
        border: 1px solid #868e96; border-radius: 6px; background-color: #fff; color: #212529;
        font: 16px/1.5 sans-serif }
      input:focus { border-color: #86b7fe; outline: 0; box-shadow: 0 0 0 4px rgb(13 110 253 / 25%) }`,
    styles: {
      label: {
        'margin-bottom': '8px',
        'font-family': 'sans-serif',
        'font-size': '14px',
        'font-weight': '400',
        'line-height': '1.5',
        color: '#212529',
      },
      input: {
        padding: '6px 12px',
        border: '1px solid #868e96',
        'border-radius': '6px',
        color: '#212529',
        'font-family': 'sans-serif',
        'font-size': '16px',
        'line-height': '1.5',
      },
      'input:focus': {
        'border-color': '#86b7fe',
        outline: '0',
        'box-shadow': '0 0 0 4px rgb(13 110 253 / 25%)',
      },
    },
  },
  // The label lies over the top of its field.
  filled: {
    css: `
      body { margin: 0; padding: 16px; font: 16px/1.5 sans-serif }
      label { display: block; margin-bottom: -24px; padding: 8px 16px 0; position: relative;
        color: #49454f; font-size: 12px; line-height: 16px }
      label:has(+ :focus) { color: #6750a4 }
      input { box-sizing: border-box; display: block; width: 100%; min-height: 56px;
        padding: 24px 16px 7px; border: 0; border-bottom: 1px solid #49454f;
        border-radius: 4px 4px 0 0; background-color: #e7e0ec; color: #1d1b20;
        font: 16px/24px sans-serif }
      input:focus { border-bottom: 2px solid #6750a4; padding-bottom: 6px; outline: 0 }`,
    styles: {
      label: {
        'margin-bottom': '-24px',
        padding: '8px 16px 0',
        color: '#49454f',
        'font-family': 'sans-serif',
        'font-size': '12px',
        'font-weight': '400',
        'line-height': '16px',
      },
      'label:focus': { color: '#6750a4' },
      brand: { 'margin-top': '6px', 'margin-bottom': '-30px', 'margin-right': '16px' },
      input: {
        'min-height': '56px',
        padding: '24px 16px 7px',
        border: '0',
        'border-bottom': '1px solid #49454f',
        'border-radius': '4px 4px 0 0',
        'background-color': '#e7e0ec',
        color: '#1d1b20',
        'font-family': 'sans-serif',
        'font-size': '16px',
        'line-height': '24px',
      },
      'input:focus': {
        'border-bottom': '2px solid #6750a4',
        padding: '24px 16px 6px',
        outline: '0',
      },
    },
  },
}

describe('the looks of the fields', { skip: lacksPrograms('chromium') }, () => {
  let shop: Shop
  let browser: Browser
  let light: ShopPage
  let dark: ShopPage
  let arabic: ShopPage
  before(async () => {
    shop = await openShop()
    browser = await openChromium()
    light = await openStates('<main>')
    dark = await openStates('<style>:root { color-scheme: dark }</style><main>')
    arabic = await openStates('<main lang="ar" dir="rtl">')
  })
  after(async () => {
    await browser.close()
    await shop.close()
  })

  describe('every state breaks no rule of axe-core, and nothing is cut off', () => {
    test('in light', async (t) => await check(t, light))
    test('in dark', async (t) => await check(t, dark, { scheme: 'dark' }))
    test('from right to left', async (t) => await check(t, arabic))
    // A window of 640 pixels, or a phone.
    test('at 320 pixels and a zoom of 200 %', async (t) => {
      await check(t, light, { width: 320, zoom: 2 })
    })
    test('at 320 pixels, from right to left', async (t) => await check(t, arabic, { width: 320 }))
    test('with text of 200 %', async (t) => await check(t, light, { width: 320, textPx: 32 }))
    test('with forced colors', async (t) => await check(t, light, { forced: true }))
  })

  for (const scheme of ['light', 'dark'] as const) {
    test(`texts, borders and signs can be told from what is behind them in ${scheme}`, async () => {
      const page = scheme === 'light' ? light : dark
      for (const frame of fieldFrames(page)) {
        const colors = await frame.evaluate(colorsSeen, CANVAS[scheme])
        for (const { what, color, behind, mark } of colors) {
          const ratio = contrast(color, behind)
          const least = mark ? MARK_CONTRAST_MIN : TEXT_CONTRAST_MIN
          assert.ok(ratio >= least, `${await nameOf(frame)}: ${what} has ${ratio.toFixed(2)}`)
        }
      }
    })
  }

  test('all that can be focused shows it, also with forced colors', async () => {
    for (const [page, forcedColors] of [
      [light, 'none'],
      [dark, 'none'],
      [light, 'active'],
    ] as const) {
      await page.emulateMedia({ forcedColors })
      for (const frame of fieldFrames(page)) {
        const first = frame.locator('input, button').first()
        if ((await first.count()) === 0) continue
        await first.focus()
        // Of a button, only the keyboard's focus is shown.
        await page.keyboard.press('Shift')
        const outlines = await frame.evaluate(() =>
          [...document.querySelectorAll<HTMLElement>('input, button')].map((it) => {
            it.focus()
            const { outlineStyle, outlineWidth } = getComputedStyle(it)
            return `${outlineStyle} ${outlineWidth}`
          }),
        )
        assert.deepEqual(new Set(outlines), new Set(['solid 2px']), await nameOf(frame))
      }
    }
    await light.emulateMedia({ forcedColors: 'none' })
  })

  test('every target is large enough for a finger', async () => {
    for (const frame of fieldFrames(light)) {
      const sizes = await frame.evaluate(() =>
        [...document.querySelectorAll('input, button')].map((it) => {
          const { width, height } = (it.closest('label') ?? it).getBoundingClientRect()
          return { name: it.id, width, height }
        }),
      )
      for (const { name, width, height } of sizes) {
        assert.ok(Math.min(width, height) >= TARGET_PX_MIN, `${name}: ${width} x ${height}`)
        if (name !== '' && name !== 'copy') assert.equal(height, 44, name)
      }
    }
  })

  test('nothing moves, whatever the buyer prefers', async () => {
    for (const frame of fieldFrames(light)) {
      const moving = await frame.evaluate(
        () =>
          [...document.querySelectorAll('*')].filter((it) => {
            const { transitionDuration, animationName } = getComputedStyle(it)
            return transitionDuration !== '0s' || animationName !== 'none'
          }).length,
      )
      assert.equal(moving, 0)
    }
  })

  test('a screen reader gets label, value, brand and error of each field in their order', async () => {
    assert.deepEqual(await treeOf(light, 'complete'), [
      'textbox "Card number" value "4242 4242 4242 4242" described "Visa" required',
      'textbox "Expiry date" value "12 / 39" required',
      'textbox "Security code" value "123" required',
      'textbox "Name on card" value "Ada Lovelace" required',
      'textbox "Postal code" value "SW1Y 4JH" required',
    ])
    assert.deepEqual(await treeOf(light, 'errors'), [
      'textbox "Card number" described "Enter the card number." invalid required',
      'textbox "Expiry date" described "Enter the expiry date." invalid required',
      'textbox "Security code" described "Enter the security code." invalid required',
      'textbox "Name on card" described "Enter the name on the card." invalid required',
      'textbox "Postal code" described "Enter the postal code." invalid required',
    ])
    assert.deepEqual(await treeOf(light, 'co-branded'), [
      'textbox "Card number" value "4571 0000 0000 0000" described ' +
        '"Visa Dankort Check the card number: it is not valid." invalid required',
      'group "Card brand"',
      'radio "Visa"',
      'radio "Dankort"',
    ])
  })

  test('a screen reader gets the digits of a revealed card one by one', async () => {
    assert.deepEqual(await treeOf(light, 'revealed'), [
      'term "Card number Visa"',
      'definition "4 2 4 2, 4 2 4 2, 4 2 4 2, 4 2 4 2"',
      'button "Copy Card number"',
      'status',
      'term "Expiry date"',
      'definition "12 / 2039"',
      'term "Security code"',
      'definition "1 2 3"',
    ])
  })

  test('an error is announced: its text changes in a region that was there before', async () => {
    const page = await openShopPage(browser, shop, '<symbolon-card KEY></symbolon-card>')
    const frame = fieldFrames(page)[0]!
    const region = await frame.$('#number-error')
    const input = frame.locator('#number')
    const seen = async (): Promise<unknown> => ({
      text: await region!.textContent(),
      live: await region!.getAttribute('aria-live'),
      invalid: await input.getAttribute('aria-invalid'),
      described: await input.getAttribute('aria-describedby'),
    })
    const quiet = {
      text: '',
      live: 'polite',
      invalid: 'false',
      described: 'number-brand number-error',
    }
    await input.fill('4242')
    assert.deepEqual(await seen(), quiet)
    await input.press('Tab')
    assert.deepEqual(await seen(), {
      ...quiet,
      text: 'The card number is too short.',
      invalid: 'true',
    })
    // A sign beside the color, which the text already says.
    const sign = await region!.evaluate((it) => getComputedStyle(it, '::before').content)
    assert.equal(sign, '"!" / ""')
    await input.press('5')
    assert.deepEqual(await seen(), quiet)
    assert.equal(await region!.evaluate((it) => it.isConnected), true)
    await page.close()
  })

  test('each iframe has a title in the language of the fields, or that of the page', async () => {
    const page = await openShopPage(
      browser,
      shop,
      `<symbolon-card KEY locale="de"></symbolon-card>
      <symbolon-card KEY locale="de" fields="cvc"></symbolon-card>
      <symbolon-text KEY label="IBAN"></symbolon-text>
      <symbolon-card KEY title="Pay by card"></symbolon-card>`,
    )
    const names = await page
      .locator('iframe')
      .evaluateAll((all) => all.map((it) => (it as HTMLElement).title))
    assert.deepEqual(names, ['Kartendaten', 'Prüfnummer', 'IBAN', 'Pay by card'])
    await page.close()
  })

  test('the copy button says that it has copied, and stays in its place', async () => {
    await light.context().grantPermissions(['clipboard-write'], { origin: shop.vaultOrigin })
    const undo = await enter(light, { width: 320 })
    await settle(light)
    const frame = await frameOf(light, 'revealed')
    const status = frame.getByRole('status')
    const button = frame.getByRole('button')
    assert.equal(await status.textContent(), '')
    const place = await button.boundingBox()
    await button.click()
    await frame.waitForFunction(() => document.querySelector('[role=status]')!.textContent !== '')
    assert.equal(await status.textContent(), 'Copied')
    await settle(light)
    assert.deepEqual(await button.boundingBox(), place)
    assert.deepEqual(await cutOff(light), [])
    await undo()
  })

  describe('the layout', () => {
    test('is one row on a wide page, two on a narrow one, and a column with large text', async () => {
      const page = await openShopPage(browser, shop, '<symbolon-card KEY></symbolon-card>')
      const frame = fieldFrames(page)[0]!
      const rows = async (mode: Mode): Promise<string> => {
        const undo = await enter(page, mode)
        await settle(page)
        const tops = await frame.evaluate(() =>
          [...document.querySelectorAll('input')].map((it) => it.getBoundingClientRect().top),
        )
        await undo()
        return tops.map((it) => [...new Set(tops)].indexOf(it)).join(' ')
      }
      assert.equal(await rows({ width: 800 }), '0 0 0')
      // 30 rem, and what the body and the rings of the fields take.
      assert.equal(await rows({ width: 480 + 16 }), '0 0 0')
      assert.equal(await rows({ width: 320 }), '0 1 1')
      assert.equal(await rows({ width: 320, textPx: 32 }), '0 1 2')
      await page.close()
    })

    test('begins at the right in Arabic, and its digits run from the left', async () => {
      const frame = await frameOf(arabic, 'complete')
      const [number, expiry, label] = await frame.evaluate(() =>
        ['#number', '#expiry', '[for=number]'].map((selector) => {
          const element = document.querySelector(selector)!
          const { left, right } = element.getBoundingClientRect()
          return { left, right, direction: getComputedStyle(element).direction }
        }),
      )
      assert.ok(number!.left > expiry!.right)
      assert.equal(label!.right, number!.right)
      assert.deepEqual([number!.direction, label!.direction], ['ltr', 'rtl'])
    })

    test('keeps inputs of a row at one height, whatever their labels', async () => {
      const page = await openShopPage(
        browser,
        shop,
        '<div style="width: 30rem"><symbolon-card KEY locale="pl"></symbolon-card></div>',
      )
      const { labels, inputs } = await fieldFrames(page)[0]!.evaluate(() => ({
        labels: [...document.querySelectorAll('label')].map((it) => it.clientHeight),
        inputs: [...document.querySelectorAll('input')].map((it) => it.getBoundingClientRect().top),
      }))
      assert.ok(labels[2]! > labels[0]!, 'the last label has more lines')
      assert.equal(new Set(inputs).size, 1)
      await page.close()
    })

    test('is a block, unless the page says something else', async () => {
      const page = await openShopPage(
        browser,
        shop,
        `<style>.grid { display: grid }</style>
        <symbolon-card KEY></symbolon-card>
        <symbolon-card KEY class="grid"></symbolon-card>`,
      )
      const displays = await page
        .locator('symbolon-card')
        .evaluateAll((all) => all.map((it) => getComputedStyle(it as HTMLElement).display))
      assert.deepEqual(displays, ['block', 'grid'])
      await page.close()
    })

    test('makes the iframe as high as its content, also out of sight', async () => {
      const page = await openShopPage(
        browser,
        shop,
        `<style>iframe { min-height: 300px; max-width: 200px; margin: 1em; padding: 1em }</style>
        <div style="height: 5000px"></div>
        <symbolon-card KEY></symbolon-card>`,
      )
      await settle(page)
      // Focuses the first field with an error, so it scrolls.
      await call(page, 'symbolon-card', 'tokenize')
      await settle(page)
      await page.evaluate(async () => {
        scrollTo(0, 0)
        for (let frames = 0; frames < 3; frames++) await new Promise(requestAnimationFrame)
      })
      await call(page, 'symbolon-card', 'clear')
      await settle(page)
      await page.evaluate(() => {
        document.querySelector('symbolon-card')!.styles = { input: { padding: '40px' } }
      })
      await settle(page)
      await page.close()
    })
  })

  for (const [design, { css, styles }] of Object.entries(DESIGNS)) {
    test(`styles make the fields look like the page's own: ${design}`, async () => {
      const page = await openShopPage(
        browser,
        shop,
        `<style>${css}</style>
        <label for="own">Card number</label><input id="own">
        <symbolon-card KEY fields="number"></symbolon-card>`,
      )
      await page.evaluate((styles) => {
        document.querySelector('symbolon-card')!.styles = styles
      }, styles)
      const frame = fieldFrames(page)[0]!
      await frame.waitForFunction(() =>
        document.adoptedStyleSheets.some((it) => it.cssRules.length > 0),
      )
      await settle(page)
      for (const [own, ours] of [
        ['label', 'label'],
        ['#own', '#number'],
      ] as const) {
        assert.deepEqual(await frame.evaluate(looksOf, ours), await page.evaluate(looksOf, own))
      }
      await frame.fill('#number', NUMBER)
      await settle(page)
      assert.deepEqual(await frame.evaluate(hiddenTexts), [])
      await page.focus('#own')
      const focused = await page.evaluate(looksOf, '#own')
      await frame.focus('#number')
      assert.deepEqual(await frame.evaluate(looksOf, '#number'), focused)
      const { x } = (await page.locator('#own').boundingBox())!
      assert.equal((await frame.locator('#number').boundingBox())!.x, x)
      await page.close()
    })
  }

  async function openStates(main: string): Promise<ShopPage> {
    const viewport = '<meta name="viewport" content="width=device-width">'
    const page = await openShopPage(browser, shop, `${viewport}${main}${STATES}</main>`)
    await fill(page, 'complete', {
      number: NUMBER,
      expiry: '12/39',
      cvc: '123',
      name: 'Ada Lovelace',
      'postal-code': 'SW1Y 4JH',
    })
    await call(page, '#errors', 'tokenize')
    await fill(page, 'co-branded', { number: '4571 0000 0000 0000' })
    await reveal(page, 'revealed')
    // The last, so that it keeps the focus, and is not judged yet.
    await fill(page, 'half', { number: '4242 42' })
    return page
  }

  /** Shows a stored card in the element with this id. */
  async function reveal(page: ShopPage, id: string): Promise<void> {
    const token = await shop.store({
      number: NUMBER,
      expiration_month: 12,
      expiration_year: 2039,
      cvc: '123',
    })
    await page.exposeFunction('authorize', async (nonce: string) => {
      await shop.authorize(nonce, token)
    })
    await page.evaluate(
      async ({ id, token }) => {
        const { authorize } = globalThis as unknown as {
          authorize: (nonce: string) => Promise<void>
        }
        const element = document.getElementById(id)
        await (element as HTMLElementTagNameMap['symbolon-reveal']).reveal(token, authorize)
      },
      { id, token },
    )
  }
})

/** Returns the colors of what can be seen in this document, and of what is behind each. */
function colorsSeen(
  canvas: string,
): readonly { what: string; color: string; behind: string; mark: boolean }[] {
  const inputs = [...document.querySelectorAll('.input')].flatMap((it) => {
    const { borderTopColor, backgroundColor, color } = getComputedStyle(it)
    const placeholder = getComputedStyle(it, '::placeholder').color
    return [
      { what: `#${it.id}`, color, behind: backgroundColor, mark: false },
      { what: `#${it.id}::placeholder`, color: placeholder, behind: backgroundColor, mark: false },
      { what: `#${it.id} border`, color: borderTopColor, behind: backgroundColor, mark: true },
      { what: `#${it.id} border, outside`, color: borderTopColor, behind: canvas, mark: true },
    ]
  })
  const texts = [...document.querySelectorAll('form .label, .error')].map((it) => {
    return { what: it.className, color: getComputedStyle(it).color, behind: canvas, mark: false }
  })
  const signs = [...document.querySelectorAll('.error')].map((it) => {
    const { color } = getComputedStyle(it, '::before')
    return { what: `${it.id}::before`, color, behind: canvas, mark: true }
  })
  const buttons = [...document.querySelectorAll('.button, .brand')].flatMap((it) => {
    const { borderTopColor, backgroundColor, color } = getComputedStyle(it)
    return [
      { what: it.className, color, behind: backgroundColor, mark: false },
      {
        what: `${it.className} border`,
        color: borderTopColor,
        behind: backgroundColor,
        mark: true,
      },
    ]
  })
  return [...inputs, ...texts, ...signs, ...buttons]
}

/** Returns the contrast of two colors such as `#fff` or `rgb(0, 0, 0)`, from 1 to 21: WCAG 2.2, contrast ratio. */
function contrast(one: string, other: string): number {
  const [darker, lighter] = [luminance(one), luminance(other)].toSorted((a, b) => a - b)
  return (lighter! + 0.05) / (darker! + 0.05)
}

function luminance(color: string): number {
  const parts = color.startsWith('#')
    ? color.match(/\w\w/g)!.map((it) => parseInt(it, 16))
    : color.match(/[\d.]+/g)!.map(Number)
  assert.equal(parts.length, 3, color)
  const [red, green, blue] = parts.map((it) => {
    const share = it / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!
}

/** Returns what Chromium tells a screen reader of an element's iframe, in reading order: one line per node of a role. */
async function treeOf(page: Page, id: string): Promise<string[]> {
  const session = await page.context().newCDPSession(await frameOf(page, id))
  const { nodes } = await session.send('Accessibility.getFullAXTree')
  await session.detach()
  const byId = new Map(nodes.map((it) => [it.nodeId, it]))
  return linesOf(nodes[0]!)

  function linesOf(node: AXNode): string[] {
    const role = String(node.role?.value)
    const children = (node.childIds ?? []).flatMap((it) => byId.get(it) ?? [])
    const below = children.flatMap(linesOf)
    if (node.ignored || !ROLES.has(role)) return below
    const name =
      textOf(node.name) || (role === 'definition' ? children.map(textBelow).join('') : '')
    const states = (node.properties ?? [])
      .filter(({ name, value }) => STATES_HEARD.has(name) && String(value.value) === 'true')
      .map(({ name }) => name)
    const value = textOf(node.value)
    const described = textOf(node.description)
    const line = [
      role,
      ...(name === '' ? [] : [JSON.stringify(name)]),
      ...(value === '' ? [] : [`value ${JSON.stringify(value)}`]),
      ...(described === '' ? [] : [`described ${JSON.stringify(described)}`]),
      ...states.toSorted(),
    ].join(' ')
    return [line, ...below]
  }

  /** Without the texts of what has a line of its own. */
  function textBelow(node: AXNode): string {
    const role = String(node.role?.value)
    if (role === 'StaticText') return textOf(node.name)
    if (ROLES.has(role)) return ''
    return (node.childIds ?? []).map((it) => textBelow(byId.get(it)!)).join('')
  }
}

interface AXNode {
  readonly nodeId: string
  readonly ignored: boolean
  readonly role?: { readonly value?: unknown }
  readonly name?: { readonly value?: unknown }
  readonly value?: { readonly value?: unknown }
  readonly description?: { readonly value?: unknown }
  readonly properties?: readonly {
    readonly name: string
    readonly value: { readonly value?: unknown }
  }[]
  readonly childIds?: readonly string[]
}

const ROLES: ReadonlySet<string> = new Set(
  'textbox group radio term definition button status'.split(' '),
)
const STATES_HEARD: ReadonlySet<string> = new Set(['invalid', 'required'])

function textOf(value: { readonly value?: unknown } | undefined): string {
  return typeof value?.value === 'string' ? value.value : ''
}

/** Returns the texts beside an input that something else lies over. */
function hiddenTexts(): string[] {
  return [...document.querySelectorAll('.label, .brand')].flatMap((it) => {
    const { left, top, width, height } = it.getBoundingClientRect()
    const style = getComputedStyle(it)
    const x = left + parseFloat(style.paddingLeft) + 2
    const y = top + (height + parseFloat(style.paddingTop)) / 2
    return width > 0 && document.elementFromPoint(x, y) !== it ? [it.className] : []
  })
}

/** Returns how an element looks, apart from its place. */
function looksOf(selector: string): Readonly<Record<string, string>> {
  const style = getComputedStyle(document.querySelector(selector)!)
  const sides = ['top', 'right', 'bottom', 'left']
  const properties = [
    'background-color',
    'border-top-left-radius',
    'border-bottom-left-radius',
    'box-shadow',
    'color',
    'font-family',
    'font-size',
    'font-weight',
    'height',
    'line-height',
    'margin-bottom',
    'outline-style',
    'width',
    ...sides.flatMap((side) => [
      `border-${side}-color`,
      `border-${side}-style`,
      `border-${side}-width`,
      `padding-${side}`,
    ]),
  ]
  return Object.fromEntries(properties.map((it) => [it, style.getPropertyValue(it)]))
}

interface Mode {
  readonly scheme?: keyof typeof CANVAS
  /** Of the window, in CSS pixels. */
  readonly width?: number
  readonly zoom?: number
  /** The size of text that the buyer has set in the browser. */
  readonly textPx?: number
  readonly forced?: boolean
}

async function check(
  t: { diagnostic: (message: string) => void },
  page: Page,
  mode: Mode = {},
): Promise<void> {
  const undo = await enter(page, mode)
  try {
    await settle(page)
    assert.deepEqual(await cutOff(page), [])
    const report = await runAxe(page, CANVAS[mode.scheme ?? 'light'])
    t.diagnostic(`${report.rules} rules`)
    assert.deepEqual(report.violations, [])
    // Whether a buyer can skip what repeats: nothing does.
    assert.deepEqual(new Set(report.undecided.map((it) => it.split(' ')[0])), new Set(['bypass']))
  } finally {
    await undo()
  }
}

async function enter(
  page: Page,
  { width = 800, zoom = 1, textPx, forced = false }: Mode,
): Promise<() => Promise<void>> {
  const before = page.viewportSize()!
  await page.setViewportSize({ width, height: WINDOW_HEIGHT })
  if (forced) await page.emulateMedia({ forcedColors: 'active' })
  const session = await page.context().newCDPSession(page)
  if (zoom !== 1) {
    const metrics = { width, height: WINDOW_HEIGHT, deviceScaleFactor: zoom, mobile: false }
    await session.send('Emulation.setDeviceMetricsOverride', metrics)
  }
  if (textPx !== undefined) await setTextSize(page, `${textPx}px`)
  return async () => {
    if (textPx !== undefined) await setTextSize(page, '')
    if (zoom !== 1) await session.send('Emulation.clearDeviceMetricsOverride')
    await session.detach()
    if (forced) await page.emulateMedia({ forcedColors: 'none' })
    await page.setViewportSize(before)
  }
}

/** As the browser's own setting does: sizes in rem and em follow. */
async function setTextSize(page: Page, size: string): Promise<void> {
  for (const frame of page.frames()) {
    await frame.evaluate((size) => void (document.documentElement.style.fontSize = size), size)
  }
}

/** Waits until every iframe is laid out in its place, and exactly as high as its content. */
async function settle(page: Page): Promise<void> {
  const deadline = Date.now() + SETTLE_MS_MAX
  for (;;) {
    const wrong: string[] = []
    for (const frame of fieldFrames(page)) {
      const iframe = await frame.frameElement()
      const place = await iframe.evaluate((it) => {
        const { clientWidth, clientHeight } = it as HTMLElement
        return [clientWidth, clientHeight].join(' x ')
      })
      const [size, content] = await frame.evaluate(() => {
        const height = Math.ceil(document.documentElement.getBoundingClientRect().height)
        return [[innerWidth, innerHeight].join(' x '), [innerWidth, height].join(' x ')]
      })
      if (place === size && size === content) continue
      wrong.push(`${await nameOf(frame)} is ${size} in ${place}, and its content ${content}`)
    }
    if (wrong.length === 0) return
    if (Date.now() > deadline) assert.fail(wrong.join('; '))
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** Returns what does not fit: elements wider than they are shown, or outside of their iframe. */
async function cutOff(page: Page): Promise<string[]> {
  const found: string[] = []
  for (const frame of fieldFrames(page)) {
    const elements = await frame.evaluate(() =>
      // A text that is only read out is one pixel wide, and the text in an input scrolls.
      [...document.querySelectorAll('html, body *:not(input, .spoken)')].flatMap((it) => {
        const { left, right, top, bottom } = it.getBoundingClientRect()
        const inside = left >= 0 && right <= innerWidth + 0.5 && top >= 0 && bottom <= innerHeight
        const fits = it.scrollWidth <= Math.max(1, it.clientWidth) || it.clientWidth === 0
        return inside && fits ? [] : [`${it.localName}.${it.className}`]
      }),
    )
    const name = await nameOf(frame)
    found.push(...elements.map((it) => `${name}: ${it}`))
  }
  const { scrollWidth, clientWidth } = await page.evaluate(() => document.documentElement)
  if (scrollWidth > clientWidth) found.push('page')
  return found
}

function fieldFrames(page: Page): readonly Frame[] {
  return page.mainFrame().childFrames()
}

async function frameOf(page: Page, id: string): Promise<Frame> {
  const handle = await page.$(`#${id} iframe`)
  return (await handle!.contentFrame())!
}

async function nameOf(frame: Frame): Promise<string> {
  const handle = await frame.frameElement()
  return (await handle.getAttribute('title')) ?? ''
}

async function fill(
  page: Page,
  id: string,
  values: Readonly<Record<string, string>>,
): Promise<void> {
  const frame = await frameOf(page, id)
  for (const [name, value] of Object.entries(values)) await frame.fill(`#${name}`, value)
}
