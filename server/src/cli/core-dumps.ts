import { writeFileSync } from 'node:fs'

/**
 * Leaves all memory out of core dumps of this process and of those it starts: keys and plaintext would be in them. Does nothing on
 * systems without the setting.
 *
 * Source: core(5), /proc/pid/coredump_filter.
 */
export function keepMemoryOutOfCoreDumps(): void {
  try {
    writeFileSync('/proc/self/coredump_filter', '0')
  } catch {
    // Systems other than Linux, and kernels built without core dumps.
  }
}
