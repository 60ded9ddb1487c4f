import { z } from 'zod'
import { charactersIn, isLongerThan } from '../base/characters.ts'

/**
 * A string of `min` to `max` characters. Zod's own checks count UTF-16 code units; the document says `maxLength`, which counts
 * code points.
 */
export function text(
  { min = 0, max }: { readonly min?: number; readonly max: number },
  message = `Must have ${min > 0 ? `${min} to` : 'at most'} ${max} characters.`,
): z.ZodString {
  const length = z.check<string>((payload) => {
    const { value } = payload
    if (!isLongerThan(value, max) && charactersIn(value) >= min) return
    payload.issues.push({ code: 'custom', message, input: value, continue: true })
  })
  length._zod.onattach.push((schema) => {
    Object.assign(schema._zod.bag, { maximum: max, ...(min > 0 && { minimum: min }) })
  })
  return z.string().check(length)
}
