import type { Texts } from './texts.ts'

export const english: Texts = {
  language: 'en',
  direction: 'ltr',
  title: 'Card details',
  labels: {
    number: 'Card number',
    expiry: 'Expiry date',
    cvc: 'Security code',
    name: 'Name on card',
    'postal-code': 'Postal code',
  },
  placeholders: { expiry: 'MM / YY' },
  errors: {
    'number.missing': 'Enter the card number.',
    'number.incomplete': 'The card number is too short.',
    'number.invalid': 'Check the card number: it is not valid.',
    'number.brand-not-accepted': 'Cards of this brand are not accepted here.',
    'expiry.missing': 'Enter the expiry date.',
    'expiry.incomplete': 'Enter month and year of the expiry date.',
    'expiry.invalid': 'Check the expiry date: it is not valid.',
    'expiry.past': 'The card has expired.',
    'cvc.missing': 'Enter the security code.',
    'cvc.incomplete': 'The security code is too short.',
    'cvc.invalid': 'The security code is too long for this card.',
    'name.missing': 'Enter the name on the card.',
    'postal-code.missing': 'Enter the postal code.',
    'too-long': 'Enter at most 200 characters.',
  },
}
