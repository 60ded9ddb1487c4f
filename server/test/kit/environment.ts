/**
 * The environment for child processes that must not see the variables of the person who runs the tests: the path of
 * programs, the time zone and, where `faketime` shifts the date of the suite, what it needs to shift theirs alike.
 */
export function bareEnvironment(): Record<string, string> {
  const inherited = Object.entries(process.env).filter(([name]) => {
    return ['PATH', 'TZ', 'LD_PRELOAD'].includes(name) || /^(?:NO_|DONT_)?FAKE/.test(name)
  })
  return Object.fromEntries(inherited.map(([name, value]) => [name, value ?? '']))
}
