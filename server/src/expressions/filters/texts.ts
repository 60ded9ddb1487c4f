/** The string filters of Liquid. A value other than text is converted to its text form; null is empty. */
import type { EvaluationRun } from '../evaluation-run.ts'
import { charactersOf, cut, lengthOf } from '../text.ts'
import { count, integer, optional, text, textFilter, type Filter } from './filter.ts'

const empty = optional(text, '')

/** The work per character of searching, including matches. */
const SEARCH = 8

export const textFilters: Readonly<Record<string, Filter>> = {
  append: textFilter([text], (it, [end]) => it + end),
  prepend: textFilter([text], (it, [start]) => start + it),
  upcase: textFilter([], (it) => it.toUpperCase()),
  downcase: textFilter([], (it) => it.toLowerCase()),
  capitalize: textFilter([], (it) => cut(it, 0, 1).toUpperCase() + cut(it, 1).toLowerCase()),
  strip: textFilter([], (it) => it.trim()),
  lstrip: textFilter([], (it) => it.trimStart()),
  rstrip: textFilter([], (it) => it.trimEnd()),
  strip_newlines: textFilter([], (it) => it.replaceAll(/\r?\n/g, ''), SEARCH),
  newline_to_br: textFilter([], (it) => it.replaceAll(/\r?\n/g, '<br />\n'), SEARCH),
  strip_html: textFilter([], stripHtml, SEARCH),

  // Without a second argument, replacing removes: a default search index is written that way.
  replace: textFilter([text, empty], (it, [old, fresh], run) => replaceAll(it, old, fresh, run)),
  replace_first: textFilter([text, empty], (it, [old, fresh], run) => {
    seek(it, old, run)
    return replaceAt(it, it.indexOf(old), old, fresh)
  }),
  replace_last: textFilter([text, empty], (it, [old, fresh], run) => {
    seek(it, old, run)
    return replaceAt(it, it.lastIndexOf(old), old, fresh)
  }),
  remove: textFilter([text], (it, [old], run) => (old === '' ? it : replaceAll(it, old, '', run))),
  remove_first: textFilter([text], (it, [old], run) => {
    seek(it, old, run)
    return replaceAt(it, it.indexOf(old), old, '')
  }),
  remove_last: textFilter([text], (it, [old], run) => {
    seek(it, old, run)
    return replaceAt(it, it.lastIndexOf(old), old, '')
  }),

  split: textFilter([text], (it, [separator], run) => {
    seek(it, separator, run)
    return split(it, separator)
  }),
  truncate: textFilter([optional(count, 50), optional(text, '...')], (it, [length, end]) => {
    if (lengthOf(it) <= length) return it
    return cut(it, 0, Math.max(length - lengthOf(end), 0)) + end
  }),
  truncatewords: textFilter(
    [optional(integer, 15), optional(text, '...')],
    (it, [words, end]) => {
      const all = wordsOf(it)
      const shown = Math.max(words, 1)
      return all.length <= shown ? it : all.slice(0, shown).join(' ') + end
    },
    SEARCH,
  ),
}

/**
 * Spends for searching `it` for `wanted` everywhere, and splitting it there.
 *
 * The engine may compare all of `wanted` at every position: for two texts of a few megabytes that was measured to take
 * minutes.
 */
function seek(it: string, wanted: string, run: EvaluationRun): void {
  run.spend(it.length * (SEARCH + (wanted.length >> 3)))
}

function replaceAll(it: string, old: string, fresh: string, run: EvaluationRun): string {
  seek(it, old, run)
  if (old === '') run.spend(it.length * SEARCH)
  const parts = old === '' ? ['', ...charactersOf(it), ''] : it.split(old)
  run.write(it.length + (parts.length - 1) * fresh.length)
  return parts.join(fresh)
}

function replaceAt(it: string, position: number, old: string, fresh: string): string {
  if (position < 0) return it
  return it.slice(0, position) + fresh + it.slice(position + old.length)
}

/** Splits as Liquid does: a space matches any white space, and trailing empty items are dropped. */
function split(it: string, separator: string): string[] {
  if (separator === '') return charactersOf(it)
  const parts = separator === ' ' ? it.trimStart().split(/\s+/) : it.split(separator)
  while (parts.at(-1) === '') parts.pop()
  return parts
}

/** Splits at the white space of ASCII, as Liquid does: a no-break space is part of a word. */
function wordsOf(it: string): string[] {
  const words = it.split(/[ \t-\r]+/)
  const start = words[0] === '' ? 1 : 0
  return words.slice(start, words.at(-1) === '' ? -1 : undefined)
}

/** Opening and closing marks of HTML that is not text. */
const HTML_BLOCKS = [
  ['<script', '</script>'],
  ['<!--', '-->'],
  ['<style', '</style>'],
] as const
const HTML_TAGS = [['<', '>']] as const

/**
 * Removes comments, scripts and styles, and then tags, as in Liquid: what is left of a tag that held a script is a tag.
 *
 * Does not make untrusted text safe to show.
 */
function stripHtml(it: string): string {
  return without(without(it, HTML_BLOCKS), HTML_TAGS)
}

/** Removes all that is between two marks, and the marks. */
function without(it: string, marks: readonly (readonly [open: string, close: string])[]): string {
  // A closing mark that was not found once does not occur later either: this keeps the scan linear.
  const nowhere = new Set<string>()
  let kept = ''
  let position = 0
  for (;;) {
    const opened = it.indexOf('<', position)
    if (opened < 0) return kept + it.slice(position)
    kept += it.slice(position, opened)
    let end = -1
    for (const [open, close] of marks) {
      if (nowhere.has(close) || !it.startsWith(open, opened)) continue
      const found = it.indexOf(close, opened + open.length)
      if (found >= 0) {
        end = found + close.length
        break
      }
      nowhere.add(close)
    }
    if (end < 0) {
      kept += '<'
      end = opened + 1
    }
    position = end
  }
}
