import pg from 'pg'

/** Makes every connection in this process take its server for a primary, whatever it reports and answers. */
export function acceptStandbys(): void {
  const { prototype } = pg.Connection
  const emit = Reflect.get(prototype, 'emit') as (...event: unknown[]) => boolean
  prototype.emit = function (this: pg.Connection, name: string | symbol, ...rest: unknown[]) {
    const [report] = rest as [{ parameterName?: string; parameterValue?: string } | undefined]
    const hides = name === 'parameterStatus' && report?.parameterName === 'in_hot_standby'
    return emit.call(this, name, ...(hides ? [{ ...report, parameterValue: 'off' }] : rest))
  }
  const parse = Reflect.get(prototype, 'parse') as (statement: { text: string }) => void
  Reflect.set(prototype, 'parse', function (this: pg.Connection, statement: { text: string }) {
    const text = statement.text.replaceAll('pg_is_in_recovery()', 'false')
    parse.call(this, { ...statement, text })
  })
}
