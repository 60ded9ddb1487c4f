import type { Json } from '../base/json.ts'
import type { EvaluationRun } from './evaluation-run.ts'

/**
 * Returns the form of a value within text: null is empty, arrays and objects are compact JSON.
 *
 * A null `run` charges nothing; it is for literals, which are never large.
 */
export function textOf(value: Json, run: EvaluationRun | null): string {
  if (typeof value === 'string') return value
  if (value === null) return ''
  if (typeof value !== 'object') return String(value)
  if (run !== null) run.write(measure(value, run))
  return JSON.stringify(value)
}

/** Returns the approximate length of a value as JSON, and spends for counting it. */
export function measure(value: Json, run: EvaluationRun): number {
  if (typeof value === 'string') return value.length + 2
  if (typeof value !== 'object' || value === null) return 6
  let size = 2
  if (Array.isArray(value)) {
    run.spend(value.length * ITEM)
    for (const item of value) size += measure(item, run) + 1
  } else {
    for (const name of namesOf(value, run)) size += name.length + measure(value[name]!, run) + 4
  }
  return size
}

/** Returns the member names of an object, and spends for them: listing many takes time. */
export function namesOf(value: { readonly [member: string]: Json }, run: EvaluationRun): string[] {
  // The cost is only known afterwards; this stops repeated listing once no work is left.
  run.spend(1)
  const names = Object.keys(value)
  run.spend(names.length * MEMBER)
  return names
}

/** The cost of an array item or an object member, in characters. */
const ITEM = 2
const MEMBER = 48

/** Returns the characters of a text, one string each; surrogate pairs stay together. */
export function charactersOf(text: string): string[] {
  return isPlain(text) ? text.split('') : Array.from(text)
}

/** Counts characters, not code units. */
export function lengthOf(text: string): number {
  if (isPlain(text)) return text.length
  let length = 0
  for (let unit = 0; unit < text.length; unit = after(text, unit)) length++
  return length
}

/** Returns `length` characters from `start`, counted from 0; all the rest without `length`. */
export function cut(text: string, start: number, length?: number): string {
  if (isPlain(text)) return text.slice(start, length === undefined ? undefined : start + length)
  const from = unitOf(text, 0, start)
  return text.slice(from, length === undefined ? undefined : unitOf(text, from, length))
}

/** Returns a text of marks with the same length. */
export function hide(text: string, mark = 'X'): string {
  return mark.repeat(lengthOf(text))
}

/** Whether every code unit is a character, so that the text can be cut anywhere. */
function isPlain(text: string): boolean {
  return !SURROGATE.test(text)
}

const SURROGATE = /[\ud800-\udfff]/

/** Returns the offset of the character `count` characters after the one at `unit`. */
function unitOf(text: string, unit: number, count: number): number {
  let at = unit
  for (let left = count; left > 0 && at < text.length; left--) at = after(text, at)
  return at
}

/** Returns the offset of the character after the one at `unit`. */
function after(text: string, unit: number): number {
  const pair =
    (text.charCodeAt(unit) & 0xfc00) === 0xd800 && (text.charCodeAt(unit + 1) & 0xfc00) === 0xdc00
  return pair ? unit + 2 : unit + 1
}
