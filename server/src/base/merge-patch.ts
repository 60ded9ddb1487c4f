import { isJsonObject, type Json } from './json.ts'

/**
 * Returns `target` with `patch` applied: members are merged recursively, and null removes one.
 *
 * Source: RFC 7386.
 */
export function mergePatch(target: Json | undefined, patch: Json): Json {
  if (!isJsonObject(patch)) return patch
  // A map, since a member may be called __proto__.
  const members = new Map(isJsonObject(target) ? Object.entries(target) : [])
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) members.delete(name)
    else members.set(name, mergePatch(members.get(name), value))
  }
  return Object.fromEntries(members)
}
