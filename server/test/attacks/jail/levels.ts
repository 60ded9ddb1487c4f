/** All attacks at every level that has walls: `npm run test:attacks --workspace server`. */
import { noBubblewrap } from '../../kit/bubblewrap.ts'
import { describeAttacks } from './behind-walls.ts'

describeAttacks('jail')
describeAttacks('hardened', noBubblewrap())
