import type { ResponseHeaderSettings } from '../base/guarded-headers.ts'

/** Operator settings for reactors. */
export interface ReactorSettings {
  /** Whether a reactor without a configuration is refused; otherwise its configuration is empty. */
  readonly configurationRequired: boolean
  /** What the asynchronous invocations of a tenant may take up in the store. */
  readonly jobStorageBytesMax: number
  readonly responseHeaders: ResponseHeaderSettings
}
