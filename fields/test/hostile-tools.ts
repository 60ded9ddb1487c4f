/** The browser's side of hostile pages: collects what attempts report. Runs before every other script of the page. */
import type { HostileAttempt, Fields, Tools } from './hostile-attempts.ts'

/** What the test calls in the page. */
export interface HostilePage {
  /** Runs `later` of an attempt. Never rejects: the error is reported, too. */
  readonly later: (name: string) => Promise<void>
  /** Returns everything that was reported, by attempt. */
  readonly seen: () => Record<string, string>
}

/** Returns the source of a script for the head of a page, which makes the attempts. */
export function hostileScript(attempts: readonly HostileAttempt[]): string {
  const sources = attempts.map(
    ({ name, first, later }) =>
      `{ name: ${JSON.stringify(name)}, first: ${sourceOf(first)}, later: ${sourceOf(later)} }`,
  )
  return `;(${installTools})([${sources.join(',\n')}])`
}

/** Attempts that run a function made of text have a name in it that is no use here. */
function sourceOf(run: unknown): string {
  return typeof run === 'function' ? `(${run})` : 'null'
}

/** Runs in the browser. It keeps the built-ins that it needs, since attempts replace them. */
function installTools(
  attempts: readonly {
    readonly name: string
    readonly first: ((tools: Tools) => void) | null
    readonly later: ((tools: Tools) => unknown) | null
  }[],
): void {
  const { apply, construct, getOwnPropertyDescriptor } = Reflect
  const { defineProperty } = Object
  const { setTimeout, TextDecoder } = window
  const valueOf = getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value')!.get!
  const outerHtmlOf = getOwnPropertyDescriptor(Element.prototype, 'outerHTML')!.get!
  const entriesOf = FormData.prototype.forEach
  const decode = TextDecoder.prototype.decode
  const depthMax = 4
  const membersMax = 40
  const { then } = Promise.prototype
  const seen: Record<string, string> = Object.create(null) as Record<string, string>
  /** While a report is made, the hooks that it runs into report nothing. */
  let reporting = false

  const textOf = (value: unknown, depth: number): string => {
    if (typeof value === 'symbol' || typeof value === 'function') return typeof value
    if (typeof value !== 'object' || value === null) return `${value as string}`
    if (depth > depthMax) return '...'
    if (value instanceof Error) return `${value.name} ${value.message} ${own(value, depth)}`
    if (value instanceof HTMLInputElement) return `${apply(valueOf, value, [])} ${html(value)}`
    if (value instanceof Element) return html(value)
    if (value instanceof Node) return `${value.nodeValue ?? value.textContent}`
    if (value instanceof String) return `${value.valueOf()}`
    if (value instanceof FormData || value instanceof Headers) {
      let text = ''
      apply(entriesOf, value, [(it: unknown, name: string) => void (text += `${name}=${it} `)])
      return text
    }
    if (value instanceof URLSearchParams || value instanceof URL) return `${value}`
    if (value instanceof ArrayBuffer || ArrayBuffer.isView(value)) {
      return apply(decode, new TextDecoder(), [value])
    }
    // Large graphs, of which attempts report what they want to see.
    if (value instanceof Event || value instanceof EventTarget) return ''
    return own(value, depth)
  }
  const html = (value: Element): string => apply(outerHtmlOf, value, []) as string
  const own = (value: object, depth: number): string => {
    let text = ''
    let members = 0
    for (const name in value) {
      if (members++ === membersMax) break
      try {
        text += `${name}: ${textOf((value as Record<string, unknown>)[name], depth + 1)}\n`
      } catch {
        // A member of another origin's window.
      }
    }
    return text
  }

  const toolsFor = (attempt: string): Omit<Tools, 'card'> => {
    seen[attempt] = ''
    const see = (...values: unknown[]): void => {
      if (reporting) return
      reporting = true
      try {
        for (let at = 0; at < values.length; at++) seen[attempt] += `${textOf(values[at], 0)}\n`
      } catch {
        // Such as a revoked proxy.
      } finally {
        reporting = false
      }
    }
    return {
      see,
      spy: (owner, ...methods) => {
        for (const method of methods) {
          const original = (owner as Record<PropertyKey, (...values: unknown[]) => unknown>)[
            method
          ]!
          const patched = function (this: unknown, ...values: unknown[]): unknown {
            see(values)
            if (this !== window) see(this)
            const result = apply(original, this, values)
            see(result)
            if (result instanceof Promise) apply(then, result, [see, see])
            return result
          }
          defineProperty(owner, method, { value: patched, configurable: true, writable: true })
        }
      },
      spyAccessor: (owner, property) => {
        const { get, set } = getOwnPropertyDescriptor(owner, property)!
        defineProperty(owner, property, {
          configurable: true,
          get() {
            const value: unknown = apply(get!, this, [])
            see(value)
            return value
          },
          set(value) {
            see(value)
            if (set !== undefined) apply(set, this, [value])
          },
        })
      },
      spyConstructor: (name) => {
        const globals = window as unknown as Record<string, new (...values: unknown[]) => object>
        const Native = globals[name]!
        const patched = function (...values: unknown[]): object {
          see(values)
          const made = construct(Native, values)
          const { send, postMessage, port } = made as Record<string, unknown>
          for (const [owner, method, original] of [
            [made, 'send', send],
            [made, 'postMessage', postMessage],
            [port, 'postMessage', (port as MessagePort | undefined)?.postMessage],
          ] as [object, string, unknown][]) {
            if (typeof original !== 'function') continue
            defineProperty(owner, method, {
              value(...messages: unknown[]) {
                see(messages)
                return apply(original, owner, messages)
              },
            })
          }
          return made
        }
        patched.prototype = Native.prototype
        globals[name] = patched as unknown as typeof Native
      },
      frames: () => {
        const found: unknown[] = []
        for (let at = 0; at < window.length; at++) {
          found.push(window[at], (window as unknown as Record<string, unknown>)[String(at)])
        }
        for (const it of document.querySelectorAll('iframe')) {
          found.push(it.contentWindow)
          if (it.name !== '') found.push(window[it.name as unknown as number])
        }
        return found.filter((it) => it !== null && it !== undefined)
      },
    }
  }

  const made = attempts.map((it) => ({ ...it, tools: toolsFor(it.name) }))
  const page: HostilePage = {
    later: async (name) => {
      let attempt
      for (const it of made) if (it.name === name) attempt = it
      const { later, tools } = attempt!
      const { card } = window as unknown as { card: Fields }
      try {
        const limit = new Promise((resolve) => setTimeout(resolve, 3000))
        await Promise.race([later?.({ ...tools, card }), limit])
      } catch (error) {
        tools.see(error)
      }
    },
    seen: () => seen,
  }
  defineProperty(window, 'hostilePage', { value: page })
  for (const { first, tools } of made) first?.(tools as Tools)
}
