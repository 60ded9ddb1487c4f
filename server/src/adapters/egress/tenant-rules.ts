import type { Destination } from '../../base/destination.ts'
import { DestinationRule } from './destination-rule.ts'

/** What the operator exempts from the rule that only public addresses may be reached. */
export interface Exemptions {
  /** For every tenant. */
  readonly allow: readonly Destination[]
  /** For single tenants in addition, by their ids; none if absent. */
  readonly allowByTenant?: ReadonlyMap<string, readonly Destination[]>
}

/** The rule against SSRF of each tenant. Decision 0092. */
export class TenantRules {
  readonly #common: DestinationRule
  readonly #ofTenants: ReadonlyMap<string, DestinationRule>

  /** `ownAddresses` as for DestinationRule. */
  constructor({ allow, allowByTenant }: Exemptions, ownAddresses: () => readonly string[]) {
    const rules = [...(allowByTenant ?? [])].map(([tenantId, more]) => {
      return [tenantId, new DestinationRule([...allow, ...more], ownAddresses)] as const
    })
    this.#common = new DestinationRule(allow, ownAddresses)
    this.#ofTenants = new Map(rules)
  }

  of(tenantId: string): DestinationRule {
    return this.#ofTenants.get(tenantId) ?? this.#common
  }

  /** Declares `port` on this machine as the service's own, for every tenant. */
  own(port: number): void {
    this.#common.own(port)
    for (const rule of this.#ofTenants.values()) rule.own(port)
  }
}
