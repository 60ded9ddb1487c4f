/**
 * Renders epoch milliseconds as ISO 8601 with a numeric offset: `2020-09-15T15:53:00.000+00:00`.
 *
 * Rows made together have the same instant, so the last result is cached.
 */
export function renderInstant(at: number): string {
  if (at !== last.at) last = { at, text: new Date(at).toISOString().replace('Z', '+00:00') }
  return last.text
}

let last = { at: 0, text: '1970-01-01T00:00:00.000+00:00' }
