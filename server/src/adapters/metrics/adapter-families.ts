import type { Histogram } from '../../base/histogram.ts'
import type { Family } from './exposition.ts'
import { gauge } from './store-families.ts'

/** Measurements of a store with group commit. */
export interface WritingActivity {
  readonly waiting: () => number
  readonly batchSize: Histogram
  readonly flush: Histogram
}

export function writingFamilies({ waiting, batchSize, flush }: WritingActivity): Family[] {
  return [
    gauge('symbolon_commits_waiting', 'Commits that are not durable yet.', waiting()),
    {
      name: 'symbolon_commit_batch_size',
      help: 'Commits that shared a flush.',
      type: 'histogram',
      samples: [{ value: batchSize }],
    },
    {
      name: 'symbolon_commit_batch_seconds',
      help: 'From handing a batch to the writer until it is durable.',
      type: 'histogram',
      samples: [{ value: flush }],
    },
  ]
}

export function reactorFamilies(processes: {
  readonly running: number
  readonly warm: number
  readonly blank: number
}): Family[] {
  return [
    {
      name: 'symbolon_reactor_processes',
      help: 'Processes for code of tenants, by what they do.',
      type: 'gauge',
      samples: Object.entries(processes).map(([state, value]) => ({ labels: { state }, value })),
    },
  ]
}
