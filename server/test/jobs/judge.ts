/** Invariants of jobs, whichever process was killed while they ran. */
import { Webhook } from 'standardwebhooks'
import type { ReceivedCallback } from './receiver.ts'

export interface AcceptedJob {
  /** As the answer said. */
  readonly id: string
  /** Whether its caller lets it be run again. */
  readonly rerun: boolean
}

/** Observations from outside, once the vault is idle. */
export interface SeenJobs {
  readonly accepted: ReadonlyMap<number, AcceptedJob>
  readonly received: readonly ReceivedCallback[]
  readonly effects: ReadonlyMap<number, number>
  /** Ids of dead letters. */
  readonly deadLetters: ReadonlySet<string>
  /** How many tokens there are. */
  readonly tokens: number
  readonly secret: string
}

export const JOB_FAULTS = {
  lost: 'accepted, and neither delivered nor a dead letter',
  twice: 'its code did what it does twice, and nobody allowed that',
  unfounded: 'told of as done, and nothing was done',
  renamed: 'came under another id than the caller was told',
  repeated: 'came again after it was acknowledged, with no kill between',
  forged: 'a signature that does not verify',
  torn: 'as many tokens as results that tell of one',
} as const
export type JobFault = keyof typeof JOB_FAULTS

export interface Judgement {
  readonly accepted: number
  readonly delivered: number
  readonly deadLettered: number
  readonly interrupted: number
  /** Jobs that were run again, because they may be. */
  readonly rerun: number
  /** Deliveries that were acknowledged before. */
  readonly duplicates: number
  /** The most of one job. */
  readonly duplicatesMax: number
  readonly faults: Readonly<Record<JobFault, number>>
  readonly stories: readonly string[]
}

export function judge({
  accepted,
  received,
  effects,
  deadLetters,
  tokens,
  secret,
}: SeenJobs): Judgement {
  const faults = Object.fromEntries(Object.keys(JOB_FAULTS).map((it) => [it, 0])) as Record<
    JobFault,
    number
  >
  const stories: string[] = []
  const add = (fault: JobFault, story: string): void => {
    faults[fault]++
    stories.push(`${fault}: ${story}`)
  }
  const byJob = Map.groupBy(received, (it) => it.job)
  const webhook = new Webhook(secret)
  const counts = {
    delivered: 0,
    deadLettered: 0,
    interrupted: 0,
    rerun: 0,
    duplicates: 0,
    duplicatesMax: 0,
  }
  let made = 0

  for (const [n, { id, rerun }] of accepted) {
    const came = byJob.get(n) ?? []
    const taken = came.filter((it) => it.status === 200)
    const done = effects.get(n) ?? 0
    if (taken.length > 0) counts.delivered++
    else if (deadLetters.has(id)) counts.deadLettered++
    else add('lost', `job ${n}, ${id}`)
    if (done > 1 && !rerun) add('twice', `job ${n}: ${done} times`)
    if (done > 1 && rerun) counts.rerun++
    const last = came.at(-1)
    if (last?.body['code'] === 'reactor_interrupted') counts.interrupted++
    if (last?.body['raw'] !== undefined) {
      made++
      if (done === 0) add('unfounded', `job ${n}`)
    }
    if (came.some((it) => it.headers['webhook-id'] !== id)) add('renamed', `job ${n}`)
    const again = taken.slice(1)
    counts.duplicates += again.length
    counts.duplicatesMax = Math.max(counts.duplicatesMax, again.length)
    if (again.some(({ kill }, before) => kill === taken[before]!.kill)) {
      add(
        'repeated',
        `job ${n}: ${taken.length} times, at kills ${taken.map((it) => it.kill).join()}`,
      )
    }
  }
  for (const { headers, text, job } of received) {
    const { kill: _, ...signed } = { kill: 0, ...headers } as Record<string, unknown>
    if (!verifies(webhook, text, signed as Record<string, string>)) add('forged', `job ${job}`)
  }
  if (tokens !== made) add('torn', `${tokens} tokens, ${made} results that tell of one`)
  return { accepted: accepted.size, ...counts, faults, stories }
}

/** Checks the signature only: the package also checks the time, and callbacks are judged after the run. */
function verifies(webhook: Webhook, text: string, headers: Record<string, string>): boolean {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': said } = headers
  const at = new Date(Number(timestamp) * 1000)
  return said!.split(' ').includes(webhook.sign(id!, at, text))
}
