import { storeContract } from '../../world/store.contract.ts'
import { MemoryStore } from './memory-store.ts'

storeContract('memory', async () => new MemoryStore())
