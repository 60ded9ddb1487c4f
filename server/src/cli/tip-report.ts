/** Reads the tip of `audit verify --tip`, and renders how it compares with the database. */
import type { Flaw } from '../audit/chain-flaws.ts'
import type { TipMatch } from '../audit/find-tip.ts'
import { ConfigError } from '../config.ts'
import { parseTip, type RememberedTip } from '../ports/remembered-tip.ts'

/** Throws ConfigError unless `text` is a tip, as a log or an earlier run has it, and a tenant is named. */
export function readTip(
  text: string | undefined,
  tenant: string | undefined,
): RememberedTip | null {
  if (text === undefined) return null
  if (tenant === undefined) {
    throw new ConfigError('--tip requires --tenant, since each tenant has an audit log of its own.')
  }
  const tip = parseTip(text)
  if (tip === null) {
    throw new ConfigError(
      `--tip is '${text}', but must be the number of an event, a colon, and its hash of 64 hexadecimal digits.`,
    )
  }
  return tip
}

/** Returns the mismatch as a flaw of the audit log; null if there is none. */
export function flawOfTip({ number }: RememberedTip, match: TipMatch): Flaw | null {
  if (match === 'missing') {
    return {
      number,
      what: 'of --tip is missing: the database was put back to an earlier state, or a failover lost its last transactions',
    }
  }
  if (match === 'different') {
    return {
      number,
      what: 'is another one than that of --tip: the database was put back to an earlier state and went on from there, or the audit log was rewritten',
    }
  }
  return null
}

/** Returns why a tenant that is not in the database cannot be verified. */
export function absenceOf(tenantId: string, tip: RememberedTip | null): string {
  const absence = `There is no tenant ${tenantId}`
  return tip === null
    ? absence
    : `${absence}: if it was not deleted, the database was put back to a state before it was created, or a failover lost that, and ` +
        `event ${tip.number} of --tip with it`
}

/** Returns the line about a compared tip; none about a mismatch if the verdict is named for it. */
export function linesOfTip(
  tip: RememberedTip | null,
  match: TipMatch | null,
  isNamed: boolean,
): string[] {
  if (tip === null || match === null) return []
  const { number } = tip
  switch (match) {
    case 'same':
      return [`  compared: event ${number} is the one of --tip`]
    case 'removed':
      return [
        `  compared: event ${number} of --tip was removed as older than the retention period, so that it cannot be compared`,
      ]
    default:
      return isNamed ? [] : [`  compared: event ${number} does not match --tip`]
  }
}
