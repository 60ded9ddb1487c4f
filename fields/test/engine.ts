/**
 * One page in a browser, driven alike in every engine.
 *
 * An engine opens documents, runs functions in them, and makes real input: a click at a point, a key. Everything else is made of
 * these, so a test does the same in Chromium, Firefox and WebKit.
 */

/** What each engine does in its own way. */
export interface Engine {
  /** Loads a page, and resolves after its load event. */
  readonly open: (url: string) => Promise<void>
  /** Calls a function in the page, and returns what it resolves with. */
  readonly evaluate: (toCall: InBrowser, value?: unknown) => Promise<unknown>
  /** Calls a function in the document of the page's iframe with this index. */
  readonly evaluateInFrame: (index: number, toCall: InBrowser, value?: unknown) => Promise<unknown>
  /** Clicks at a point of the window, in CSS pixels. */
  readonly click: (point: ScreenPoint) => Promise<void>
  /** Types a text key by key, where the focus is. */
  readonly type: (text: string) => Promise<void>
  /** Presses a key, named as in `KeyboardEvent.key`, where the focus is, while others are held. */
  readonly press: (key: string, ...held: readonly Modifier[]) => Promise<void>
  /** Returns a PNG of the window. */
  readonly screenshot: () => Promise<Uint8Array>
  readonly close: () => Promise<void>
}

/** Its source is sent to the browser, so it refers to nothing outside. Its value and its result are JSON. */
export type InBrowser = (value: never) => unknown

export type Modifier = 'Control' | 'Shift'

export interface ScreenPoint {
  readonly x: number
  readonly y: number
}

/** What a test does with a page that has card fields in it. */
export interface Driver extends Pick<Engine, 'open' | 'type' | 'press' | 'screenshot' | 'close'> {
  /** Calls a function in the page, and returns what it resolves with. It refers to nothing outside. */
  readonly evaluate: <Result, Value = undefined>(
    toCall: (value: Value) => Result,
    value?: Value,
  ) => Promise<Awaited<Result>>
  /** Clicks an element of the page. */
  readonly clickElement: (selector: string) => Promise<void>
  /** Clicks the input with this label, in whichever iframe it is. */
  readonly clickField: (label: string) => Promise<void>
  /** Copies a text in a `<textarea>` of the page, and pastes it into a field. */
  readonly paste: (label: string, text: string) => Promise<void>
  readonly field: (label: string) => Promise<FieldView>
  /** Resolves once a function returns true in the page. */
  readonly until: <Value = undefined>(
    holds: (value: Value) => boolean,
    value?: Value,
  ) => Promise<void>
  /** Resolves once a field is as it should be. */
  readonly untilField: (label: string, holds: (it: FieldView) => boolean) => Promise<void>
}

/** A field as the buyer sees it. */
export interface FieldView {
  readonly value: string
  /** Whether keys go there. */
  readonly focused: boolean
  /** Whether the iframe has the focus, but nothing in it. */
  readonly frameFocused: boolean
  /** Where the caret is. */
  readonly caret: number | null
  /** The flaw that is shown, or nothing. */
  readonly flaw: string
}

/** The most that one step of a browser may take, such as a click or a load: minutes on a machine that does much else. */
export const STEP_MS_MAX = 600_000

/** A condition that does not hold by then never will, in milliseconds. */
const UNTIL_MS_MAX = 120_000

export function driverOf(engine: Engine): Driver {
  const evaluate = engine.evaluate as Driver['evaluate']
  return { ...engine, evaluate, clickElement, clickField, paste, field, until, untilField }

  async function clickElement(selector: string): Promise<void> {
    await engine.click(await evaluate(centerOf, selector))
  }

  async function clickField(label: string): Promise<void> {
    const index = await frameWith(label)
    const corner = await evaluate(cornerOfFrame, index)
    const { x, y } = (await engine.evaluateInFrame(index, centerOfLabelled, label)) as ScreenPoint
    await engine.click({ x: corner.x + x, y: corner.y + y })
  }

  async function paste(label: string, text: string): Promise<void> {
    await evaluate((text: string) => {
      document.querySelector('textarea')!.value = text
    }, text)
    await clickElement('textarea')
    await engine.press('a', 'Control')
    await engine.press('c', 'Control')
    await clickField(label)
    await engine.press('v', 'Control')
  }

  async function field(label: string): Promise<FieldView> {
    return (await engine.evaluateInFrame(await frameWith(label), viewOf, label)) as FieldView
  }

  async function frameWith(label: string): Promise<number> {
    const count = await evaluate(() => document.querySelectorAll('iframe').length)
    for (let index = 0; index < count; index++) {
      if ((await engine.evaluateInFrame(index, viewOf, label)) !== null) return index
    }
    throw new Error(`No iframe has a field ${label}`)
  }

  async function until<Value>(holds: (value: Value) => boolean, value?: Value): Promise<void> {
    await repeat(async () => {
      if (await evaluate(holds, value)) return null
      return `${String(holds)} of ${JSON.stringify(value)}`
    })
  }

  async function untilField(label: string, holds: (it: FieldView) => boolean): Promise<void> {
    await repeat(async () => {
      const seen = await field(label)
      return holds(seen) ? null : `${String(holds)} of ${label}, which is ${JSON.stringify(seen)}`
    })
  }
}

/** Looks again until nothing is missing. */
async function repeat(look: () => Promise<string | null>): Promise<void> {
  const late = performance.now() + UNTIL_MS_MAX
  for (;;) {
    const missing = await look()
    if (missing === null) return
    if (performance.now() > late) throw new Error(`Never happened: ${missing}`)
  }
}

// These run in a browser, each on its own.

function centerOf(selector: string): ScreenPoint {
  const element = document.querySelector(selector)!
  element.scrollIntoView({ block: 'nearest' })
  const { x, y, width, height } = element.getBoundingClientRect()
  return { x: x + width / 2, y: y + height / 2 }
}

function cornerOfFrame(index: number): ScreenPoint {
  const { x, y } = document.querySelectorAll('iframe')[index]!.getBoundingClientRect()
  return { x, y }
}

function centerOfLabelled(text: string): ScreenPoint {
  const label = [...document.querySelectorAll('label')].find((it) => it.textContent === text)!
  const { x, y, width, height } = label.control!.getBoundingClientRect()
  return { x: x + width / 2, y: y + height / 2 }
}

function viewOf(text: string): FieldView | null {
  const label = [...document.querySelectorAll('label')].find((it) => it.textContent === text)
  if (label === undefined) return null
  const input = label.control as HTMLInputElement
  return {
    value: input.value,
    focused: document.hasFocus() && document.activeElement === input,
    frameFocused: document.hasFocus() && document.activeElement === document.body,
    caret: input.selectionStart,
    flaw: document.getElementById(`${input.id}-error`)!.textContent,
  }
}
