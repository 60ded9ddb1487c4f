/** Clears the text of a run that Node keeps where later code can read it, except for that of the top level. */
import { performance, type PerformanceEntry } from 'node:perf_hooks'

// Of the time before any code of a reactor.
const { apply } = Reflect
const exec: (text: string) => unknown = Reflect.get(RegExp.prototype, 'exec')
const [clearMarks, clearMeasures, clearResources, entriesOf, mark, measure, setResourcesMax] = [
  performance.clearMarks.bind(performance),
  performance.clearMeasures.bind(performance),
  performance.clearResourceTimings.bind(performance),
  performance.getEntries.bind(performance),
  performance.mark.bind(performance),
  performance.measure.bind(performance),
  performance.setResourceTimingBufferSize.bind(performance),
]

interface TimelineEntry extends PerformanceEntry {
  /** Of marks and measures. */
  readonly detail?: unknown
}

export class RunTraces {
  #accepted: TimelineEntry[] = []

  /** Accepts the present marks and measures: each run begins with them. */
  accept(): void {
    this.#accepted = entriesOf()
  }

  clear(): void {
    // `RegExp.$1` and the like are of the last match, which is now empty.
    apply(exec, /(?:)/, [''])
    setResourcesMax(RESOURCES_MAX)
    const now = entriesOf()
    const [same, count] = [this.#accepted, now.length]
    if (count === same.length && now.every((it, n) => it === same[n])) return
    this.#restoreEntries()
  }

  #restoreEntries(): void {
    clearMarks()
    clearMeasures()
    clearResources()
    for (const { entryType, name, startTime, duration, detail } of this.#accepted) {
      if (entryType === 'mark') mark(name, { startTime, detail })
      if (entryType === 'measure') measure(name, { start: startTime, duration, detail })
    }
    this.#accepted = entriesOf()
  }
}

/** By default. https://www.w3.org/TR/resource-timing/#dom-performance-setresourcetimingbuffersize */
const RESOURCES_MAX = 250
