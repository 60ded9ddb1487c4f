import type { Entry, Ledger } from './ledger.ts'
import { perform, type Agenda } from './load.ts'
import type { VaultClient } from './vault-client.ts'
import { operation } from './workload.ts'

/** Answers that were never in doubt are repeated, too, but not all of them. */
const REPEATED_ONE_IN = 20

/**
 * After the last kill, repeats every operation whose outcome is unknown and that can be repeated. Then repeats once more
 * each that was ever in doubt: an idempotency key has one outcome forever.
 */
export async function settle(
  client: VaultClient,
  ledger: Ledger,
  agenda: Agenda,
  seed: number,
): Promise<void> {
  for (let it = agenda.takeAgain(); it !== undefined; it = agenda.takeAgain()) {
    await inPeace(perform(client, ledger, agenda, it))
  }
  for (const { sent, outcome, wasUnknown } of ledger.entries.values()) {
    const inDoubt = wasUnknown || sent.op % REPEATED_ONE_IN === 0
    if (sent.idempotencyKey === null || outcome.outcome !== 'acked' || !inDoubt) continue
    await inPeace(perform(client, ledger, agenda, operation(seed, sent.op)))
  }
}

async function inPeace(performed: Promise<boolean>): Promise<void> {
  if (!(await performed)) throw new Error('A server that nobody kills does not answer')
}

/** Operations and tokens, by the outcome their callers got. */
export interface OperationCounts {
  readonly operations: number
  readonly ackedOperations: number
  readonly refusedOperations: number
  readonly unknownOperations: number
  /** Unknown at first, and known since the caller asked again. */
  readonly resolvedOperations: number
  readonly ackedTokens: number
}

export function countOf(entries: ReadonlyMap<number, Entry>): OperationCounts {
  const all = [...entries.values()]
  const outcomes = all.map((it) => it.outcome)
  const acked = outcomes.flatMap((it) => (it.outcome === 'acked' ? [it.tokens] : []))
  return {
    operations: all.length,
    ackedOperations: acked.length,
    refusedOperations: outcomes.filter((it) => it.outcome === 'refused').length,
    unknownOperations: outcomes.filter((it) => it.outcome === 'unknown').length,
    resolvedOperations: all.filter((it) => it.wasUnknown && it.outcome.outcome !== 'unknown')
      .length,
    ackedTokens: acked.reduce((sum, it) => sum + it.length, 0),
  }
}
