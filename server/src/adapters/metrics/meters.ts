/**
 * Wraps the ports to count what passes through them. Counting only adds to numbers; nothing is
 * rendered before a collector asks. No label ever holds a tenant's data. Decision 0039.
 */
import { Histogram, SECONDS } from '../../base/histogram.ts'
import { EgressFailure, EgressRefusal, type Egress } from '../../ports/egress.ts'
import type { Log, LogFields } from '../../ports/log.ts'
import { LOST_TIP_EVENT } from '../../ports/remembered-tip.ts'
import { RunnerUnavailable, type ReactorRunner } from '../../ports/reactor-runner.ts'
import type { Family, HistogramSample, Labels, MetricSample } from './exposition.ts'

export class Meters {
  readonly #requests = new Counts(['route', 'method', 'status'])
  readonly #requestSeconds = new Map<string, Histogram>()
  readonly #events = new Counts(['event', 'level'])
  readonly #limited = new Counts(['limit'])
  #lostTips = 0
  readonly #egress = new Counts(['outcome'])
  readonly #egressSeconds = new Histogram(SECONDS)
  readonly #runs = new Counts(['outcome'])
  readonly #runSeconds = new Histogram(SECONDS)

  /** Counts requests by their log lines, one per request, whether or not the line is written. */
  log(inner: Log): Log {
    return {
      info: (event, fields) => {
        this.#noted('info', event, fields)
        inner.info(event, fields)
      },
      warn: (event, fields, error) => {
        this.#noted('warn', event, fields)
        inner.warn(event, fields, error)
      },
      error: (event, error, fields) => {
        this.#noted('error', event, fields)
        inner.error(event, error, fields)
      },
    }
  }

  /** Counts requests sent, and measures the time until the header section of the response arrives. */
  egress(inner: Egress): Egress {
    return {
      vet: (sender, url, allowedDestinations) =>
        inner.vet(sender, url, allowedDestinations).catch((error: unknown) => {
          this.#egress.add(outcomeOf(error))
          throw error
        }),
      send: (route, request, receiver) => {
        const began = performance.now()
        const call = inner.send(route, request, {
          headerSection: (status, reason, headers) => {
            this.#egressSeconds.observe((performance.now() - began) / 1000)
            receiver.headerSection(status, reason, headers)
          },
          data: (chunk) => receiver.data(chunk),
          end: () => receiver.end(),
        })
        call.done.then(
          () => this.#egress.add('answered'),
          (error: unknown) => this.#egress.add(outcomeOf(error)),
        )
        return call
      },
      tunnel: (tenantId, host, port, allowedDestinations, signal) =>
        inner.tunnel(tenantId, host, port, allowedDestinations, signal),
      close: () => inner.close(),
    }
  }

  runner(inner: ReactorRunner): ReactorRunner {
    return {
      level: inner.level,
      guestUser: inner.guestUser,
      hasCapacity: (tenantId) => inner.hasCapacity(tenantId),
      run: async (job, admit) => {
        const began = performance.now()
        let refusal: unknown
        try {
          const outcome = await inner.run(job, admit && (() => admit().catch(refuse)))
          this.#runs.add(outcome.kind === 'unsendable' ? 'returned' : outcome.kind)
          return outcome
        } catch (error) {
          // A run that is not admitted is none.
          if (error === refusal) throw error
          this.#runs.add(error instanceof RunnerUnavailable ? 'unavailable' : 'fault')
          throw error
        } finally {
          this.#runSeconds.observe((performance.now() - began) / 1000)
        }

        function refuse(error: unknown): never {
          refusal = error
          throw error
        }
      },
      close: () => inner.close(),
    }
  }

  families(): Family[] {
    const seconds: HistogramSample[] = Array.from(this.#requestSeconds, ([route, value]) => {
      return { labels: { route }, value }
    })
    return [
      counter('symbolon_requests_total', 'Requests that were answered.', this.#requests.samples()),
      {
        name: 'symbolon_request_seconds',
        help: 'From the header section of a request to the end of its answer.',
        type: 'histogram',
        samples: seconds,
      },
      counter(
        'symbolon_requests_limited_total',
        'Requests with public keys that were over a limit.',
        this.#limited.samples(),
      ),
      counter(
        'symbolon_log_events_total',
        'Lines of the log, written or not.',
        this.#events.samples(),
      ),
      counter(
        'symbolon_audit_log_behind_total',
        'Audit logs that ended before an event that this server had seen committed.',
        [{ value: this.#lostTips }],
      ),
      counter('symbolon_egress_total', 'Requests that left, or were to.', this.#egress.samples()),
      {
        name: 'symbolon_egress_seconds',
        help: 'From sending a request to the header section of its answer.',
        type: 'histogram',
        samples: [{ value: this.#egressSeconds }],
      },
      counter('symbolon_reactor_runs_total', 'Runs of reactors.', this.#runs.samples()),
      {
        name: 'symbolon_reactor_seconds',
        help: 'From asking for a run to its outcome, waiting included.',
        type: 'histogram',
        samples: [{ value: this.#runSeconds }],
      },
    ]
  }

  #noted(level: string, event: string, fields: LogFields | undefined): void {
    this.#events.add(event, level)
    if (event === LOST_TIP_EVENT) this.#lostTips++
    const { route, method, status, ms, limit } = fields ?? {}
    if (typeof route !== 'string' || typeof method !== 'string' || typeof ms !== 'number') return
    if (typeof limit === 'string') this.#limited.add(limit)
    this.#requests.add(route, method, typeof status === 'number' ? String(status) : 'none')
    let seconds = this.#requestSeconds.get(route)
    if (seconds === undefined) {
      seconds = new Histogram(SECONDS)
      this.#requestSeconds.set(route, seconds)
    }
    seconds.observe(ms / 1000)
  }
}

/** Counters by a few labels, each with few values. */
class Counts {
  readonly #names: readonly string[]
  readonly #counts = new Map<string, number>()

  constructor(names: readonly string[]) {
    this.#names = names
  }

  add(...values: string[]): void {
    const key = values.join('\n')
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1)
  }

  samples(): MetricSample[] {
    return Array.from(this.#counts, ([key, value]) => {
      const values = key.split('\n')
      const labels: Labels = Object.fromEntries(this.#names.map((name, n) => [name, values[n]!]))
      return { labels, value }
    })
  }
}

function counter(name: string, help: string, samples: readonly MetricSample[]): Family {
  return { name, help, type: 'counter', samples }
}

function outcomeOf(error: unknown): string {
  if (error instanceof EgressRefusal) return 'refused'
  return error instanceof EgressFailure ? error.fault : 'fault'
}
