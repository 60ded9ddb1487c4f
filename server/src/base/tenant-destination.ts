import { parseDestination, type Destination } from './destination.ts'
import { isUuid } from './id.ts'

/** A destination that the operator exempts for one tenant, as in `TENANT_ID=10.1.0.0/16`. */
export interface TenantDestination {
  readonly tenantId: string
  readonly destination: Destination
}

/** Returns null if `text` is no such entry. */
export function parseTenantDestination(text: string): TenantDestination | null {
  const parts = split(text)
  const destination = parseDestination(parts?.written ?? '')
  if (parts === null || destination === null || !isUuid(parts.tenantId)) return null
  return { tenantId: parts.tenantId, destination }
}

/** Returns what is wrong with an entry that parseTenantDestination() does not accept, as a relative clause. */
export function flawOfTenantDestination(text: string): string {
  const parts = split(text)
  if (parts === null) return 'which has no tenant: write TENANT_ID= before each destination'
  if (!isUuid(parts.tenantId)) return 'whose tenant is not the id of one, a UUID'
  if (parts.written !== '') return 'whose destination is invalid'
  return 'which has no destination: remove it, or add one after the equals sign'
}

function split(text: string): { readonly tenantId: string; readonly written: string } | null {
  const at = text.indexOf('=')
  if (at < 0) return null
  return { tenantId: text.slice(0, at).trim().toLowerCase(), written: text.slice(at + 1).trim() }
}
