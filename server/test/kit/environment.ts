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
 * Returns the same environment for a program that keeps the real date: under `faketime`, timeouts of PostgreSQL never fire, and
 * the threads of browsers spin.
 */
export function atRealDate(environment: NodeJS.ProcessEnv): Record<string, string> {
  const others = Object.entries(environment).filter(([name]) => name !== 'LD_PRELOAD')
  return Object.fromEntries(others.map(([name, value]) => [name, value ?? '']))
}
