/**
 * Renders metrics as text for Prometheus.
 *
 * Source: prometheus.io/docs/instrumenting/exposition_formats, version 0.0.4.
 */
import type { Histogram } from '../../base/histogram.ts'

export type Labels = Readonly<Record<string, string>>

export interface Family {
  /** Ends with its base unit; for a counter, with `_total`. */
  readonly name: string
  /** One sentence. */
  readonly help: string
  readonly samples: readonly MetricSample[] | readonly HistogramSample[]
  readonly type: 'counter' | 'gauge' | 'histogram'
}

export interface MetricSample {
  readonly labels?: Labels
  readonly value: number
}

export interface HistogramSample {
  readonly labels?: Labels
  readonly value: Histogram
}

export const EXPOSITION_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

export function renderFamilies(families: readonly Family[]): string {
  return families.map(renderFamily).join('')
}

function renderFamily({ name, help, type, samples }: Family): string {
  const lines = [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`]
  for (const { labels = {}, value } of samples) {
    if (typeof value === 'number') lines.push(`${name}${renderLabels(labels)} ${value}`)
    else lines.push(...renderHistogram(name, labels, value))
  }
  return `${lines.join('\n')}\n`
}

function renderHistogram(name: string, labels: Labels, it: Histogram): string[] {
  let count = 0
  const buckets = [...it.bounds.map(String), '+Inf'].map((le, n) => {
    count += it.counts[n]!
    return `${name}_bucket${renderLabels({ ...labels, le })} ${count}`
  })
  const own = renderLabels(labels)
  return [...buckets, `${name}_sum${own} ${it.sum}`, `${name}_count${own} ${count}`]
}

function renderLabels(labels: Labels): string {
  const parts = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`)
  return parts.length === 0 ? '' : `{${parts.join(',')}}`
}

function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
