/** Returns numbers in [0, 1). */
export type Dice = () => number

/** The same numbers for the same seed and part. Source: mulberry32, public domain. */
export function diceOf(seed: number, part: number): Dice {
  let state = (Math.imul(seed, 0x9e3779b1) + Math.imul(part, 0x85ebca6b)) | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let it = Math.imul(state ^ (state >>> 15), state | 1)
    it = (it + Math.imul(it ^ (it >>> 7), it | 61)) ^ it
    return ((it ^ (it >>> 14)) >>> 0) / 2 ** 32
  }
}
