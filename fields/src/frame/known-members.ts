/** Type checks for responses, so that only known members are copied to the page. */

export function isString(value: unknown): value is string {
  return typeof value === 'string'
}

export function areStrings(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every(isString)
}

/** Whether `value` is a JSON object, not an array. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns the members whose value passes `isWanted`. */
export function pick<Value>(
  members: Readonly<Record<string, unknown>>,
  isWanted: (value: unknown) => value is Value,
): Readonly<Record<string, Value>> {
  const kept = Object.entries(members).filter((it): it is [string, Value] => isWanted(it[1]))
  return Object.fromEntries(kept)
}
