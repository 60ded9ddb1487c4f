import type { Store } from './store.ts'

/** Returns `store` with its commit replaced. */
export function withCommit(store: Store, commit: Store['commit']): Store {
  return {
    tenants: store.tenants,
    applications: store.applications,
    sessions: store.sessions,
    tokens: store.tokens,
    answers: store.answers,
    transactions: store.transactions,
    proxies: store.proxies,
    rows: store.rows,
    jobs: store.jobs,
    auditLog: store.auditLog,
    accessRows: store.accessRows,
    sweep: (now) => store.sweep(now),
    lostTips: () => store.lostTips(),
    check: () => store.check(),
    close: () => store.close(),
    commit,
  }
}
