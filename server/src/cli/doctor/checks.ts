import { AUDIT_CHECKS } from './audit-checks.ts'
import type { Check } from './check.ts'
import { FOLDER_CHECKS } from './folder-checks.ts'
import { KEY_CHECKS } from './key-checks.ts'
import { MACHINE_CHECKS } from './machine-checks.ts'
import { NETWORK_CHECKS } from './network-checks.ts'
import { POSTGRES_CHECKS } from './postgres-checks.ts'
import { REACTOR_CHECKS } from './reactor-checks.ts'
import { SCHEMA_CHECK } from './schema-check.ts'
import { SERVICE_CHECKS } from './service-checks.ts'
import { SETTINGS_CHECKS } from './settings-checks.ts'
import { SQLITE_CHECKS } from './sqlite-checks.ts'
import { WORK_CHECKS } from './work-checks.ts'

/** Every check, in the order in which they run. docs/operate/doctor.md has a row for each. */
export const CHECKS: readonly Check[] = [
  ...SETTINGS_CHECKS,
  ...MACHINE_CHECKS,
  ...FOLDER_CHECKS,
  ...KEY_CHECKS,
  ...SQLITE_CHECKS,
  ...POSTGRES_CHECKS,
  SCHEMA_CHECK,
  ...SERVICE_CHECKS,
  ...NETWORK_CHECKS,
  ...REACTOR_CHECKS,
  ...WORK_CHECKS,
  ...AUDIT_CHECKS,
]
