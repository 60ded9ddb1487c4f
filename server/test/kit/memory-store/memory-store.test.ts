import { storeContract } from '../../../src/ports/store.contract.ts'
import { openReadable } from '../../model/entity-stores.ts'
import { MemoryStore } from './memory-store.ts'

const entities = { open: () => openReadable('memory'), sequences: 80 }

storeContract('memory', async () => new MemoryStore(), entities)
