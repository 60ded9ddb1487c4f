/**
 * Card brands by the first digits of a number.
 *
 * Source: ISO/IEC 7812 issuer ranges, compiled from the "Payment card number" article of Wikipedia and compared with
 * `credit-card-type` 10.3.0 (braintree, MIT), read in November 2026. Where they differ, the wider set of lengths counts: a
 * refused card is a lost sale, and the check digit still catches typing errors.
 *
 * No public table is complete, and these cannot be known from one:
 *
 * - Domestic schemes on cards of an international brand share its ranges: Cartes Bancaires, Bancontact, girocard, PagoBANCOMAT,
 *   eftpos. Only the issuer's BIN file, which networks license to acquirers, says which cards carry them.
 * - Maestro's ranges are 50, 56 to 58 and 6 as a whole, without the ranges of others. Only those that no other network uses
 *   are listed. Its numbers of 12 digits are left out, since the vault stores 13 to 19.
 * - Troy, RuPay and Elo have ranges within Discover's 65, and more are added. A number of a range that is not listed counts as
 *   Discover. So does one in a range of eight digits, of which Troy has some.
 * - RuPay's 8172 to 8199 are the part of 81 that UnionPay leaves free; no source lists them one by one.
 * - Old JCB numbers of 15 digits (1800, 2131) are no longer issued. They count as of no known brand.
 */

export const BRANDS = [
  'visa',
  'mastercard',
  'american-express',
  'diners-club',
  'discover',
  'jcb',
  'unionpay',
  'maestro',
  'mir',
  'elo',
  'hipercard',
  'dankort',
  'rupay',
  'troy',
  'verve',
] as const

export type BrandName = (typeof BRANDS)[number]

export interface Brand {
  readonly name: BrandName
  /** As people write it. */
  readonly title: string
  /** Ranges of first digits, both ends included and of one length: `51-55`, or `4`. */
  readonly ranges: readonly string[]
  /** How many digits its numbers have, ascending. */
  readonly lengths: readonly number[]
  /** How many digits the security code has. */
  readonly codeLength: 3 | 4
}

/** So many first digits decide the brand: the length of the longest range. */
export const BRAND_DIGITS = 6

/** What a number of no known brand may be: the vault stores any card number of 13 to 19 digits. */
export const UNKNOWN_LENGTHS: readonly number[] = [13, 14, 15, 16, 17, 18, 19]

const UP_TO_19 = [16, 17, 18, 19]

const TABLE: Readonly<Record<BrandName, Omit<Brand, 'name'>>> = {
  visa: { title: 'Visa', ranges: ['4'], lengths: [13, 16, 18, 19], codeLength: 3 },
  mastercard: {
    title: 'Mastercard',
    ranges: ['51-55', '2221-2720'],
    lengths: [16],
    codeLength: 3,
  },
  'american-express': {
    title: 'American Express',
    ranges: ['34', '37'],
    lengths: [15],
    codeLength: 4,
  },
  'diners-club': {
    title: 'Diners Club',
    ranges: ['300-305', '3095', '36', '38-39'],
    lengths: [14, 15, 16, 17, 18, 19],
    codeLength: 3,
  },
  discover: {
    title: 'Discover',
    ranges: ['6011', '644-649', '65'],
    lengths: UP_TO_19,
    codeLength: 3,
  },
  jcb: { title: 'JCB', ranges: ['3528-3589'], lengths: UP_TO_19, codeLength: 3 },
  unionpay: {
    title: 'UnionPay',
    ranges: ['62', '8100-8171'],
    lengths: [14, 15, 16, 17, 18, 19],
    codeLength: 3,
  },
  maestro: {
    title: 'Maestro',
    ranges: ['5018', '5020', '5038', '5893', '6304', '67'],
    lengths: [13, 14, 15, 16, 17, 18, 19],
    codeLength: 3,
  },
  mir: { title: 'Mir', ranges: ['2200-2204'], lengths: UP_TO_19, codeLength: 3 },
  elo: {
    title: 'Elo',
    ranges: [
      '401178-401179',
      '431274',
      '438935',
      '451416',
      '457393',
      '457631-457632',
      '504175',
      '506699-506778',
      '509000-509999',
      '627780',
      '636297',
      '636368',
      '650031-650033',
      '650035-650051',
      '650405-650439',
      '650485-650538',
      '650541-650598',
      '650700-650718',
      '650720-650727',
      '650901-650978',
      '651652-651679',
      '655000-655019',
      '655021-655058',
    ],
    lengths: [16],
    codeLength: 3,
  },
  hipercard: { title: 'Hipercard', ranges: ['606282'], lengths: [16], codeLength: 3 },
  dankort: { title: 'Dankort', ranges: ['5019'], lengths: [16], codeLength: 3 },
  rupay: {
    title: 'RuPay',
    ranges: ['508500-508999', '606985-607984', '608001-608500', '652150-653149', '8172-8199', '82'],
    lengths: [16],
    codeLength: 3,
  },
  troy: { title: 'Troy', ranges: ['9792'], lengths: [16], codeLength: 3 },
  verve: {
    title: 'Verve',
    ranges: ['506099-506198', '507865-507964', '650002-650027'],
    lengths: [16, 18, 19],
    codeLength: 3,
  },
}

/** Cards that carry two brands, the international one first. */
const CO_BRANDS: readonly {
  readonly ranges: readonly string[]
  readonly brands: readonly BrandName[]
}[] = [
  { ranges: ['4571'], brands: ['visa', 'dankort'] },
  { ranges: ['353', '356'], brands: ['jcb', 'rupay'] },
  { ranges: ['622126-622925'], brands: ['unionpay', 'discover'] },
  {
    ranges: [
      '650052',
      '650082-650083',
      '650092',
      '650161',
      '650170',
      '650173',
      '650175',
      '650268',
      '650271',
      '650273-650274',
      '650456-650457',
      '650836',
      '650846-650850',
      '650987',
      '650990',
      '654997',
      '657366',
      '657998',
      '658758',
      '658767-658768',
    ],
    brands: ['discover', 'troy'],
  },
]

export function brandOf(name: BrandName): Brand {
  return { name, ...TABLE[name] }
}

/**
 * Returns the brands that a number beginning with `digits` carries: none as long as that is open, two for co-branded cards. More
 * digits may change the answer, up to BRAND_DIGITS.
 *
 * Example: `4571` is `['visa', 'dankort']`, `4` is `['visa']`, `5` is `[]`.
 */
export function brandsOf(digits: string): readonly BrandName[] {
  const shared = CO_BRANDS.find(({ ranges }) => ranges.some((it) => isWithin(digits, it)))
  if (shared !== undefined) return shared.brands
  // The longest range wins: Elo has ranges within those of Visa and Discover.
  let found: BrandName | undefined
  let longest = 0
  for (const name of BRANDS) {
    for (const range of TABLE[name].ranges) {
      const { length } = range.split('-', 1)[0]!
      if (length > longest && isWithin(digits, range)) {
        found = name
        longest = length
      }
    }
  }
  return found === undefined ? [] : [found]
}

function isWithin(digits: string, range: string): boolean {
  const [first = '', last = first] = range.split('-')
  if (digits.length < first.length) return false
  const start = digits.slice(0, first.length)
  return start >= first && start <= last
}
