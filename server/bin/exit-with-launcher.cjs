'use strict'

/**
 * Runs Symbolon as the child of a launcher (symbolon.cjs), and exits when that launcher does, however it ends.
 *
 * Only the launcher holds the other end of descriptor 3, and never writes to it. The kernel closes that end with the
 * launcher, also after SIGKILL and while this process is still loading. A thread reads it, because the main thread may be
 * busy. Only the launcher names this file: a descriptor 3 from elsewhere, such as systemd's socket activation, is never
 * taken for its own. Decision 0063.
 */

const { Socket } = require('net')
const { isMainThread, Worker } = require('worker_threads')

const LAUNCHER_DESCRIPTOR = 3

/** Longer than an idle server takes to stop, and short enough that another one can start within a second. */
const STOP_MS_MAX = 300

if (isMainThread) {
  // Without these two options a Worker opens the standard streams of the process, and writes to them.
  const watcher = new Worker(__filename, { stdout: true, stderr: true })
  watcher.unref()
  void import('./symbolon.cjs')
} else {
  const launcher = new Socket({ fd: LAUNCHER_DESCRIPTOR })
  launcher.once('close', () => {
    process.kill(process.pid, 'SIGTERM')
    setTimeout(() => process.kill(process.pid, 'SIGKILL'), STOP_MS_MAX)
  })
  launcher.resume()
}
