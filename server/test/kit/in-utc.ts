/** Runs `work` with UTC as the time zone of the process, for a library that uses that zone. */
export function inUtc<Value>(work: () => Value): Value {
  const { TZ } = process.env
  process.env['TZ'] = 'UTC'
  try {
    return work()
  } finally {
    if (TZ === undefined) delete process.env['TZ']
    else process.env['TZ'] = TZ
  }
}
