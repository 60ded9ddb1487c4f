/**
 * Node's HTTP without its side effects.
 *
 * `import` of `node:http` reads every name it exports, including lazy ones that load their implementation when read: fetch and
 * WebSocket, which are not used here and take 2.4 MB of the heap.
 */
export const http = process.getBuiltinModule('node:http')
