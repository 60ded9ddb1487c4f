/** Parsers of the values of settings. Each returns undefined for a value that is not accepted. */
import { isUnambiguous } from './absolute-url.ts'

export function wholeFrom(min: number, max: number): (text: string) => number | undefined {
  return (text) => {
    const value = /^\d{1,10}$/.test(text) ? Number(text) : NaN
    return value >= min && value <= max ? value : undefined
  }
}

export function onOrOff(text: string): boolean | undefined {
  return text === 'on' ? true : text === 'off' ? false : undefined
}

export function oneOf<Value extends string>(
  values: readonly Value[],
): (text: string) => Value | undefined {
  return (text) => values.find((it) => it === text)
}

/** Returns the items of a comma-separated list. */
export function listOf(text: string): string[] {
  return text
    .split(',')
    .map((it) => it.trim())
    .filter((it) => it !== '')
}

/** Returns the origin that `text` is the URL of, such as `https://vault.example`. */
export function parseOrigin(text: string): string | undefined {
  const url = URL.parse(text)
  if (url === null || !isUnambiguous(text) || !/^https?:$/.test(url.protocol)) return undefined
  return /^\w+:\/\/[^/?#@]+\/?$/.test(text) ? url.origin : undefined
}
