/**
 * Resolves as Promise.all() does, but rejects, with the first that did, only when nothing is under way any more: what is
 * done next on a connection must not meet what was begun before and goes on.
 */
export async function allOf<const Promises extends readonly Promise<unknown>[]>(
  promises: Promises,
): Promise<{ -readonly [Nth in keyof Promises]: Awaited<Promises[Nth]> }> {
  try {
    return await Promise.all(promises)
  } catch (error) {
    await Promise.allSettled(promises)
    throw error
  }
}
