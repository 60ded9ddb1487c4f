/**
 * Returns an environment for child processes without the variables of the user who runs the tests: only PATH, the time zone
 * and, if `faketime` shifts the date of the suite, its variables to shift theirs alike.
 */
export function bareEnvironment(): Record<string, string> {
  const inherited = Object.entries(process.env).filter(([name]) => {
    return ['PATH', 'TZ', 'LD_PRELOAD'].includes(name) || /^(?:NO_|DONT_)?FAKE/.test(name)
  })
  return Object.fromEntries(inherited.map(([name, value]) => [name, value ?? '']))
}

/**
 * Returns the environment for a browser: that of the tests, at the real date. `faketime` makes the threads of Chromium and Firefox
 * spin, which no machine has the cores for.
 */
export function browserEnvironment(): Record<string, string> {
  const shown = Object.entries(process.env).filter(([name]) => name !== 'LD_PRELOAD')
  return Object.fromEntries(shown.map(([name, value]) => [name, value ?? '']))
}
