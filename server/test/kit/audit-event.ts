import type { AuditEvent } from '../../src/ports/audit-log.ts'

/** An event of no importance. */
export function auditEventAt(at: number, traceId = 'trace'): AuditEvent {
  return {
    at,
    applicationId: 'application',
    keyId: 'key',
    traceId,
    entityType: 'token',
    operation: 'read',
    allowed: true,
    changed: false,
    permission: 'token:read',
    shown: 'mask',
    replayed: false,
    dryRun: false,
    destination: null,
    entityIds: ['thing'],
  }
}
