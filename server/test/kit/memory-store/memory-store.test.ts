import { storeContract } from '../../../src/ports/store.contract.ts'
import { MemoryStore } from './memory-store.ts'

storeContract('memory', async () => new MemoryStore())
