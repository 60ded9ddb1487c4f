import type { CanonicalJson } from './canonical-json.ts'
import type { Clock } from './clock.ts'
import type { Egress } from './egress.ts'
import type { Keyring } from './keyring.ts'
import type { Log } from './log.ts'
import type { ReactorRunner } from './reactor-runner.ts'
import type { WorldRandom } from './random.ts'
import type { Store } from './store.ts'

/** Everything the service uses outside its own logic. */
export interface World {
  readonly clock: Clock
  readonly random: WorldRandom
  readonly log: Log
  readonly keyring: Keyring
  readonly store: Store
  readonly egress: Egress
  readonly runner: ReactorRunner
  readonly canonicalJson: CanonicalJson
}
