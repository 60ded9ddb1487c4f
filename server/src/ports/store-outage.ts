import { ServiceError } from '../base/service-error.ts'

/** Whether `error` says that the store did not answer, or not in time: then the cause is not what is stored. */
export function isStoreOutage(error: unknown): boolean {
  return error instanceof ServiceError && error.code === 'store_unavailable'
}

/**
 * Rethrows what Store.commit() rejects with, as `store_unavailable` unless it is a refusal: it is not known whether the changes
 * were made.
 */
export function rejectAsOutage(cause: unknown): never {
  if (cause instanceof ServiceError) throw cause
  throw new ServiceError('store_unavailable', undefined, { cause })
}
