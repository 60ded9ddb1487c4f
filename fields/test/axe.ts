/** Runs axe-core over a page and the iframes in it, as one document. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type axe from 'axe-core'
import type { Frame, Page } from 'playwright-core'

const SOURCE = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8')

export interface AxeReport {
  /** One line per rule and element. */
  readonly violations: readonly string[]
  /** Rules that axe could not decide by itself, by name. */
  readonly undecided: readonly string[]
  /** How many rules ran. */
  readonly rules: number
}

/**
 * Returns what all rules of axe-core say of `page` and its iframes. `background` is what stands behind the iframes: axe takes
 * their transparent documents for white.
 */
export async function runAxe(page: Page, background: string): Promise<AxeReport> {
  await load(page.mainFrame())
  const contexts = await page.evaluate(() => globalThis.axe.utils.getFrameContexts(document))
  const partials = await Promise.all([
    page.evaluate(partialReport, { context: null, background }),
    // axe-core merges the results in this order.
    ...contexts.map(async ({ frameSelector, frameContext }) => {
      const frame = await frameAt(page, String(frameSelector))
      await load(frame)
      return await frame.evaluate(partialReport, { context: frameContext, background })
    }),
  ])
  const { violations, incomplete, passes, inapplicable } = await page.evaluate(
    async (partials) => await globalThis.axe.finishRun(partials as axe.PartialResults, {}),
    partials,
  )
  return {
    violations: violations.flatMap(({ id, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id} at ${target.join(' ')}: ${failureSummary}`),
    ),
    undecided: incomplete.flatMap(({ id, nodes }) =>
      nodes.map(({ target }) => `${id} at ${target.join(' ')}`),
    ),
    rules: violations.length + incomplete.length + passes.length + inapplicable.length,
  }
}

/** By the debugger, so no Content-Security-Policy forbids it. */
async function load(frame: Frame): Promise<void> {
  if (!(await frame.evaluate(() => 'axe' in globalThis))) await frame.evaluate(SOURCE)
}

async function frameAt(page: Page, selector: string): Promise<Frame> {
  const handle = await page.$(selector)
  const frame = await handle?.contentFrame()
  if (frame == null) throw new Error(`No frame at ${selector}`)
  return frame
}

async function partialReport({
  context,
  background,
}: {
  /** Null for all of the page. */
  readonly context: object | null
  readonly background: string
}): Promise<axe.PartialResult> {
  const { style } = document.documentElement
  style.backgroundColor = background
  try {
    return await globalThis.axe.runPartial((context ?? document) as axe.ElementContext, {})
  } finally {
    style.backgroundColor = ''
  }
}

declare global {
  // Defined by the source of axe-core, in each frame.
  var axe: typeof import('axe-core')
}
