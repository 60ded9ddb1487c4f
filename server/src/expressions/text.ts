import type { Json } from '../base/json.ts'
import type { Run } from './run.ts'

/**
 * Returns the form a value takes inside text: null is empty, arrays and objects are compact JSON.
 *
 * Without a run nobody is asked to spend; for literals, which are never large.
 */
export function textOf(value: Json, run: Run | null): string {
  if (typeof value === 'string') return value
  if (value === null) return ''
  if (typeof value !== 'object') return String(value)
  run?.write(sizeOf(value))
  return JSON.stringify(value)
}

/** Returns about how many characters a value takes as JSON; never less than one for each of its parts. */
export function sizeOf(value: Json): number {
  if (typeof value === 'string') return value.length + 2
  if (typeof value !== 'object' || value === null) return 6
  let size = 2
  if (Array.isArray(value)) {
    for (const item of value) size += sizeOf(item) + 1
  } else {
    for (const name in value) size += name.length + sizeOf(value[name]!) + 4
  }
  return size
}

/**
 * Returns the characters of a text, one string each; what takes two code units stays together.
 *
 * Where `split` would do, use `isPlain` first: most texts need no array.
 */
export function charactersOf(text: string): string[] {
  return isPlain(text) ? text.split('') : Array.from(text)
}

/** Whether every code unit of the text is a character, so that it may be cut anywhere. */
export function isPlain(text: string): boolean {
  return !SURROGATE.test(text)
}

const SURROGATE = /[\ud800-\udfff]/

export function lengthOf(text: string): number {
  if (isPlain(text)) return text.length
  let length = 0
  for (const _ of text) length++
  return length
}

/** Returns `length` characters from `start`, counted from 0. */
export function cut(text: string, start: number, length: number): string {
  if (isPlain(text)) return text.slice(start, start + length)
  return Array.from(text)
    .slice(start, start + length)
    .join('')
}

/** Returns a text of the same length that shows nothing. */
export function hide(text: string, mark = 'X'): string {
  return mark.repeat(lengthOf(text))
}
