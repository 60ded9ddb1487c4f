/** Renders epoch milliseconds as ISO 8601 with a numeric offset: `2020-09-15T15:53:00.000+00:00`. */
export function renderInstant(at: number): string {
  return new Date(at).toISOString().replace('Z', '+00:00')
}
