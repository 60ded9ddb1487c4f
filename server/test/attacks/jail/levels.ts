/**
 * All attacks at every level: `npm run test:attacks --workspace server`. That none succeeds at the level portable
 * shows what Node holds back, and not that it has walls: none of these is made against Node itself.
 */
import { noBubblewrap } from '../../kit/bubblewrap.ts'
import { describeAttacks } from './behind-walls.ts'

describeAttacks('jail')
describeAttacks('hardened', noBubblewrap())
describeAttacks('portable')
