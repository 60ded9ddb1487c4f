import type { CommandInput } from './command.ts'

/** A management key that a command has created, with its owner. */
export interface PrintedKey {
  readonly tenantId: string
  readonly applicationId: string
  readonly apiKey: string
}

/** Prints a new key, which is shown only this once; with `--json` as one JSON object. */
export function printKey(
  { flags, out }: Pick<CommandInput, 'flags' | 'out'>,
  { tenantId, applicationId, apiKey }: PrintedKey,
): void {
  const printed = { tenant_id: tenantId, application_id: applicationId, api_key: apiKey }
  if (flags['json'] === undefined) {
    for (const [member, value] of Object.entries(printed)) out(`${member.padEnd(16)}${value}`)
  } else out(JSON.stringify(printed))
}
