import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Family } from './exposition.ts'
import { gauge } from './store-families.ts'

/** Returns the metrics of the process; event loop delays are those since the last call. */
export function processFamilies(version: string): () => Family[] {
  const delay = monitorEventLoopDelay({ resolution: 20 })
  delay.enable()
  const startedAt = Date.now() / 1000 - process.uptime()
  return () => {
    const { user, system } = process.cpuUsage()
    const [p99, max] = [delay.percentile(99), delay.max]
    delay.reset()
    const info = { labels: { version, node: process.version }, value: 1 }
    return [
      { name: 'symbolon_info', help: 'Which program this is.', type: 'gauge', samples: [info] },
      gauge('process_start_time_seconds', 'When it was started, in Unix time.', startedAt),
      gauge('process_resident_memory_bytes', 'Memory in use.', process.memoryUsage.rss()),
      {
        name: 'process_cpu_seconds_total',
        help: 'Time on a processor.',
        type: 'counter',
        samples: [{ value: (user + system) / 1e6 }],
      },
      gauge('symbolon_loop_delay_p99_seconds', 'Of turns of the event loop.', p99 / 1e9),
      gauge('symbolon_loop_delay_max_seconds', 'Of turns of the event loop.', max / 1e9),
    ]
  }
}
