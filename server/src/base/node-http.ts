/**
 * Node's HTTP, and nothing that comes along.
 *
 * Whoever imports `node:http` has every name it exports read, also those that load what they stand for when they are read:
 * fetch and WebSocket, which nobody here uses and which take 2.4 MB of the heap.
 */
export const http = process.getBuiltinModule('node:http')
