/** The final report of a long run: a table for people, the stories, then one line of JSON for programs. */
export interface FaultReport {
  readonly faults: Readonly<Record<string, number>>
  readonly stories: readonly string[]
}

/** `meanings` describes each fault; `counts` holds further counts of the run. */
export function renderReport(
  counts: Readonly<Record<string, unknown>>,
  meanings: Readonly<Record<string, string>>,
  { faults, stories }: FaultReport,
): string[] {
  const rows = Object.entries(counts).map(([name, it]) => {
    const value = typeof it === 'object' && it !== null ? JSON.stringify(it) : String(it)
    return `  ${name.padEnd(20)}${value.padStart(10)}`
  })
  const found = Object.entries(meanings).map(
    ([fault, meaning]) => `  ${fault.padEnd(20)}${String(faults[fault]).padStart(10)}   ${meaning}`,
  )
  return ['', ...rows, '', ...found, '', ...stories, JSON.stringify({ ...counts, faults })]
}
