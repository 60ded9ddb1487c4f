import type { AppSettings } from '../../src/app.ts'
import { NO_FIELD_BUILDS } from '../../src/fields/field-builds.ts'
import {
  CALLBACK_PAUSE_MS,
  JOB_STORAGE_BYTES_MAX,
  PUBLIC_TRANSACTIONS_OPEN_MAX,
  TRANSACTION_LIFETIME_MS,
  TRANSACTIONS_OPEN_MAX,
} from '../../src/base/limits.ts'

/** Operator settings of a still vault, unless a test has its own. */
export const STILL_SETTINGS: AppSettings = {
  version: '0.0.0',
  fieldBuilds: NO_FIELD_BUILDS,
  corsOrigins: '*',
  publicAddress: { url: null, fieldsUrl: null, trustedProxies: [] },
  requestLimits: { perKey: null, perAddress: null },
  callbackRetryBaseMs: CALLBACK_PAUSE_MS,
  tokens: { tokensMax: 100, privacyShown: false },
  transactions: {
    lifetimeMs: TRANSACTION_LIFETIME_MS,
    openMax: TRANSACTIONS_OPEN_MAX,
    publicOpenMax: PUBLIC_TRANSACTIONS_OPEN_MAX,
  },
  // In real time: long enough that no test reaches it.
  proxy: { timeoutMs: 600_000 },
  reactors: {
    configurationRequired: true,
    jobStorageBytesMax: JOB_STORAGE_BYTES_MAX,
    responseHeaders: { allowed: [], origin: null },
  },
}
