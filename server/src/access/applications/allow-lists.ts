/** Lists in the bodies of applications and tenants that limit them: of destinations, and of origins. */
import { z } from 'zod'
import type { ApplicationType } from '../../base/access.ts'
import { isJsonObject, type Json } from '../../base/json.ts'
import {
  DESTINATION_CHARS_MAX,
  DESTINATIONS_MAX,
  ORIGIN_CHARS_MAX,
  ORIGINS_MAX,
} from '../../base/limits.ts'
import { ORIGIN_FORM, writtenOrigin } from '../../base/origin.ts'
import { text } from '../../request/text-length.ts'
import { DESTINATION_FORM, writtenDestination } from '../destinations.ts'

const destinationName = text({ max: DESTINATION_CHARS_MAX }).meta({
  description: `Must be ${DESTINATION_FORM}.`,
  examples: ['api.example.com'],
})

export const destinations = z.array(destinationName).max(DESTINATIONS_MAX)

const origin = text({ max: ORIGIN_CHARS_MAX }).meta({
  description: `Must be ${ORIGIN_FORM}.`,
  examples: ['https://shop.example'],
})

export const allowedOrigins = z.array(origin).max(ORIGINS_MAX)

/**
 * Returns the list that an update asks for: null if its body lifts the limit, and `current` if it does not mention the list. An
 * older client that does not know the list sends the rest back, and must not lift a limit by that.
 */
export function askedList<Current>(
  body: Json | undefined,
  member: string,
  parsed: readonly string[] | undefined,
  current: Current,
): readonly string[] | null | Current {
  // To the parser, null is the same as absent.
  if (isJsonObject(body) && body[member] === null) return null
  return parsed ?? current
}

/** Returns the destinations of an application as they are stored. Adds to `errors` if they are invalid. */
export function destinationsOf(
  names: readonly string[] | null,
  type: ApplicationType,
  errors: Record<string, string[]>,
): readonly string[] | null {
  if (names !== null && type === 'management') {
    errors['destinations'] = ['A management application has none: nothing is sent for it.']
  }
  return writtenDestinations(names, errors)
}

/** Returns the origins of an application as they are stored. Adds to `errors` if they are invalid. */
export function allowedOriginsOf(
  origins: readonly string[] | null,
  type: ApplicationType,
  errors: Record<string, string[]>,
): readonly string[] | null {
  if (origins !== null && type !== 'public') {
    errors['allowed_origins'] = [
      'Only a public application has any: other keys do not belong in a page.',
    ]
  }
  return writtenList(origins, 'allowed_origins', writtenOrigin, ORIGIN_FORM, errors)
}

export function writtenDestinations(
  names: readonly string[] | null,
  errors: Record<string, string[]>,
): readonly string[] | null {
  return writtenList(names, 'destinations', writtenDestination, DESTINATION_FORM, errors)
}

/** Returns the list with each item in its one written form, and once. Adds to `errors` for each item that `write` finds invalid. */
function writtenList(
  list: readonly string[] | null,
  member: string,
  write: (item: string) => string | null,
  form: string,
  errors: Record<string, string[]>,
): readonly string[] | null {
  if (list === null) return null
  const written = list.map((it, index) => {
    const item = write(it)
    if (item === null) errors[`${member}[${index}]`] = [`Must be ${form}.`]
    return item ?? ''
  })
  return [...new Set(written)]
}
