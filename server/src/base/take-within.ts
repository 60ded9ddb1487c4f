export interface Taken<Item> {
  readonly taken: Item[]
  /** Whether it stopped before the end of the items was known. */
  readonly isCut: boolean
}

/** Takes items up to the one with which their sizes add up to `enough`, and reads no further. */
export function takeWithin<Item>(
  items: Iterable<Item>,
  sizeOf: (item: Item) => number,
  enough: number,
): Taken<Item> {
  const taken: Item[] = []
  let size = 0
  for (const it of items) {
    taken.push(it)
    size += sizeOf(it)
    if (size >= enough) return { taken, isCut: true }
  }
  return { taken, isCut: false }
}
