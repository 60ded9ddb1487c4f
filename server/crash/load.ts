import { setTimeout as sleep } from 'node:timers/promises'
import type { Dice } from './dice.ts'
import type { Ledger } from './ledger.ts'
import type { VaultClient } from './vault-client.ts'
import type { WorkloadOperation } from './workload.ts'

/** Operations still to be sent: first those whose outcome is not known and may be asked for again. */
export class Agenda {
  readonly #make: (op: number) => WorkloadOperation
  readonly #again: WorkloadOperation[] = []
  #next = 1

  constructor(make: (op: number) => WorkloadOperation) {
    this.#make = make
  }

  take(): WorkloadOperation {
    return this.#again.shift() ?? this.#make(this.#next++)
  }

  /** The next operation that was sent before, if there is one. */
  takeAgain(): WorkloadOperation | undefined {
    return this.#again.shift()
  }

  /** Without an idempotency key the operation cannot be repeated: its outcome stays unknown. */
  giveBack(operation: WorkloadOperation): void {
    if (operation.sent.idempotencyKey !== null) this.#again.push(operation)
  }
}

/** Sends one operation and keeps the books; false when its outcome is not known. */
export async function perform(
  client: VaultClient,
  ledger: Ledger,
  agenda: Agenda,
  operation: WorkloadOperation,
): Promise<boolean> {
  const { sent } = operation
  if (!ledger.entries.has(sent.op)) ledger.send(sent)
  const outcome = await client.send(operation)
  ledger.settle(sent.op, outcome)
  if (outcome.outcome !== 'unknown') return true
  agenda.giveBack(operation)
  return false
}

/** Lets `clients` call at once, each with a short rest after an answer, until the server is gone. */
export async function load(
  client: VaultClient,
  ledger: Ledger,
  agenda: Agenda,
  clients: number,
  dice: Dice,
): Promise<void> {
  await Promise.all(
    Array.from({ length: clients }, async () => {
      while (await perform(client, ledger, agenda, agenda.take())) {
        await sleep(dice() * REST_MS_MAX)
      }
    }),
  )
}

/** Callers that never rest would make more tokens in a cycle than can be read back in one. */
const REST_MS_MAX = 25
