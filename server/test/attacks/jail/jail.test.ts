import { describeAttacks } from './behind-walls.ts'

describeAttacks('jail')
